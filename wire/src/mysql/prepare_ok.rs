//! The head of the reply to COM_STMT_PREPARE.

use super::{Fault, bytes::Fields};

/// The head of the reply to COM_STMT_PREPARE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrepareOk {
    /// The server's number of the statement.
    pub id: u32,
    /// Columns of its result; 0: it has none.
    pub columns: u16,
    /// Parameters that it takes.
    pub parameters: u16,
    /// Warnings that SHOW WARNINGS would list.
    pub warnings: u16,
}

impl PrepareOk {
    /// Bytes of its payload.
    pub const LEN: usize = 12;

    /// Reads the payload of the head of such a reply.
    ///
    /// # Errors
    /// It is no such head.
    pub fn read(payload: &[u8]) -> Result<Self, Fault> {
        let mut fields = Fields::of(payload, "head of a prepared statement");
        fields.u8()?;
        let (id, columns, parameters) = (fields.u32()?, fields.u16()?, fields.u16()?);
        fields.u8()?;
        let warnings = fields.u16()?;
        fields.end()?;
        Ok(Self {
            id,
            columns,
            parameters,
            warnings,
        })
    }
}
