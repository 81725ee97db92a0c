//! The rows of a result, be it that of a text or of a prepared statement, in values.

use std::borrow::Cow;

use anyhow::{Context, Result, bail, ensure};

use super::packet;

/// A value of a row; `None`: NULL. A number has the digits that it has in the result of a text.
pub(crate) type Value<'a> = Option<Cow<'a, [u8]>>;

/// The rows of a result that has come as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows<'a> {
    /// The payload of the first one, if there is one.
    pub(crate) first: Option<&'a [u8]>,
    /// The number of rows.
    pub(super) count: usize,
    /// The number of columns.
    pub(super) columns: usize,
    /// The packets that define the columns.
    pub(super) definitions: &'a [u8],
}

impl<'a> Rows<'a> {
    /// The values of the only row; `None`: there is no row. `is_binary`: the statement was prepared.
    ///
    /// # Errors
    /// When there are more rows, or when the bytes of this one are not those of its columns.
    pub(crate) fn only(&self, is_binary: bool) -> Result<Option<Vec<Value<'a>>>> {
        ensure!(self.count <= 1, "{} rows instead of one", self.count);
        self.first
            .map(|row| match is_binary {
                true => self.binary(row),
                false => self.text(row),
            })
            .transpose()
    }

    fn text(&self, mut row: &'a [u8]) -> Result<Vec<Value<'a>>> {
        let mut values = Vec::with_capacity(self.columns);
        for _ in 0..self.columns {
            if let [0xfb, rest @ ..] = row {
                values.push(None);
                row = rest;
                continue;
            }
            let (value, rest) = packet::text(row).context("a row that is cut off")?;
            values.push(Some(Cow::Borrowed(value)));
            row = rest;
        }
        ensure!(row.is_empty(), "a row with more than its columns");
        Ok(values)
    }

    fn binary(&self, row: &'a [u8]) -> Result<Vec<Value<'a>>> {
        // The first two bits of the map belong to no column.
        let map = (2 + self.columns).div_ceil(8);
        let (head, mut row) = row.split_at_checked(1 + map).context("a row that is cut off")?;
        ensure!(
            head[0] == 0,
            "a row of a text in the result of a prepared statement"
        );
        let mut definitions = self.definitions;
        let mut values = Vec::with_capacity(self.columns);
        for bit in 2..2 + self.columns {
            let definition = packet::first(definitions).context("a column without a definition")?;
            definitions = &definitions[definition.length..];
            if head[1 + bit / 8] & (1 << (bit % 8)) != 0 {
                values.push(None);
                continue;
            }
            let (value, rest) = Form::of(definition.payload)?
                .take(row)
                .context("a row that is cut off")?;
            values.push(Some(value));
            row = rest;
        }
        ensure!(row.is_empty(), "a row with more than its columns");
        Ok(values)
    }
}

/// The form of a column's values in the rows of a prepared statement.
#[derive(Clone, Copy)]
enum Form {
    /// A text behind its length.
    Text,
    /// An integer of so many bytes.
    Integer { size: usize, is_unsigned: bool },
}

impl Form {
    /// Reads a definition.
    fn of(definition: &[u8]) -> Result<Self> {
        const UNSIGNED: u8 = 0x20;
        let mut rest = definition;
        // Six names: those of the catalog and the schema, and two of the table and of the column.
        for _ in 0..6 {
            (_, rest) = packet::text(rest).context("a definition that is cut off")?;
        }
        // The length of what follows, two bytes of a collation, four of a width, the type, and the flags.
        let [12, _, _, _, _, _, _, kind, flags, ..] = *rest else {
            bail!("a definition without a type");
        };
        let size = match kind {
            // DECIMAL, VARCHAR and BIT, and from JSON on all kinds of decimals, texts and bytes.
            0 | 15 | 16 | 245.. => return Ok(Self::Text),
            // TINY
            1 => 1,
            // SHORT and YEAR
            2 | 13 => 2,
            // LONG and INT24
            3 | 9 => 4,
            // LONGLONG
            8 => 8,
            _ => bail!("a column of type {kind}, which no statement of a run asks for"),
        };
        Ok(Self::Integer {
            size,
            is_unsigned: flags & UNSIGNED != 0,
        })
    }

    /// The value at the start of `row`, and what follows. `None`: it is cut off.
    fn take(self, row: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
        match self {
            Self::Text => packet::text(row).map(|(text, rest)| (Cow::Borrowed(text), rest)),
            Self::Integer { size, is_unsigned } => {
                let (bytes, rest) = row.split_at_checked(size)?;
                Some((Cow::Owned(digits(bytes, is_unsigned).into_bytes()), rest))
            }
        }
    }
}

/// The digits of an integer of at most eight bytes.
fn digits(bytes: &[u8], is_unsigned: bool) -> String {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    let number = u64::from_le_bytes(whole);
    if is_unsigned {
        return number.to_string();
    }
    let unused = 8 * (whole.len() - bytes.len());
    let signed = (number << unused) as i64 >> unused;
    signed.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packet that defines a column of this type.
    fn definition(kind: u8, flags: u8) -> Vec<u8> {
        let mut out = Vec::new();
        packet::append(2, &mut out, |out| {
            for name in ["def", "s", "t", "t", "c", "c"] {
                packet::append_text(name.as_bytes(), out);
            }
            out.extend_from_slice(&[12, 0x3f, 0, 20, 0, 0, 0, kind, flags, 0, 0, 0, 0]);
        });
        out
    }

    fn rows<'a>(definitions: &'a [u8], columns: usize, first: &'a [u8]) -> Rows<'a> {
        Rows {
            first: Some(first),
            count: 1,
            columns,
            definitions,
        }
    }

    fn shown(values: &[Value<'_>]) -> Vec<Option<String>> {
        let text = |value: &Cow<'_, [u8]>| String::from_utf8_lossy(value).into_owned();
        values.iter().map(|value| value.as_ref().map(text)).collect()
    }

    /// Five columns as they stand in a row of either form: a text, two numbers, NULL, and a short number.
    fn five() -> (Vec<u8>, [&'static [u8]; 2]) {
        let kinds = [(252, 0), (8, 0x20), (8, 0), (253, 0), (1, 0)];
        let definitions = kinds.map(|(kind, flags)| definition(kind, flags)).concat();
        let text = b"\x02k1\x1418446744073709551615\x02-2\xfb\x03127";
        let binary = b"\0\x20\x02k1\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff\xff\xff\xff\xff\x7f";
        (definitions, [text, binary])
    }

    #[test]
    fn a_row_has_the_same_values_in_both_forms() {
        let (definitions, forms) = five();
        let expected = [
            Some("k1"),
            Some("18446744073709551615"),
            Some("-2"),
            None,
            Some("127"),
        ];
        let expected = expected.map(|value| value.map(str::to_owned));
        for (row, is_binary) in forms.into_iter().zip([false, true]) {
            let values = rows(&definitions, 5, row).only(is_binary).unwrap().unwrap();
            assert_eq!(shown(&values), expected);
        }
        let none = Rows {
            first: None,
            count: 0,
            ..rows(&definitions, 5, b"")
        };
        assert_eq!(none.only(true).unwrap(), None);
        let two = Rows {
            count: 2,
            ..rows(&definitions, 5, forms[0])
        };
        assert!(two.only(false).is_err());
    }

    #[test]
    fn a_row_that_is_cut_off_or_too_long_is_none_at_any_place() {
        let (definitions, forms) = five();
        for (row, is_binary) in forms.into_iter().zip([false, true]) {
            for length in 0..row.len() {
                let cut = rows(&definitions, 5, &row[..length]).only(is_binary);
                assert!(cut.is_err(), "{length} bytes of {}", row.escape_ascii());
            }
            let long = [row, b"\0"].concat();
            assert!(rows(&definitions, 5, &long).only(is_binary).is_err());
            assert!(rows(&definitions, 4, row).only(is_binary).is_err());
        }
        // A text's row has no zero byte before it.
        assert!(rows(&definitions, 5, forms[0]).only(true).is_err());
    }

    #[test]
    fn definitions_that_are_none_make_no_value_and_no_panic() {
        let (definitions, [_, row]) = five();
        for length in 0..definitions.len() {
            let cut = rows(&definitions[..length], 5, row).only(true);
            assert!(cut.is_err(), "{length} bytes");
        }
        for place in 0..definitions.len() {
            let mut bad = definitions.clone();
            bad[place] ^= 0xff;
            let _ = rows(&bad, 5, row).only(true);
        }
        let double = definition(5, 0);
        assert!(rows(&double, 1, b"\0\0\0\0\0\0\0\0\0\0").only(true).is_err());
    }

    #[test]
    fn integers_of_every_size_have_their_digits() {
        for (bytes, is_unsigned, digits_of) in [
            (&b"\xff"[..], false, "-1"),
            (b"\xff", true, "255"),
            (b"\xfe\xff", false, "-2"),
            (b"\0\x80", true, "32768"),
            (b"\0\0\0\x80", false, "-2147483648"),
            (b"\x40\0\0\0\0\0\0\0", false, "64"),
        ] {
            assert_eq!(digits(bytes, is_unsigned), digits_of);
        }
    }
}
