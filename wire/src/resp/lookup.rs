//! The numbers of commands.

use super::{Args, Command};

/// The number of a request whose name no server knows, or whose number of arguments none takes.
pub const UNKNOWN: u16 = Command::COUNT;
/// The number of an inline command, before it is made an array.
pub const INLINE: u16 = Command::COUNT + 1;
/// The number of a command that the configuration declares.
pub const DECLARED: u16 = Command::COUNT + 2;
/// The number of a whole transaction without a command. Each command in it increases the number by one, so
/// that the number tells how many replies there are.
pub const TRANSACTION: u16 = Command::COUNT + 3;

/// The number of replies to a request with this number.
pub const fn replies(number: u16) -> u16 {
    match number.checked_sub(TRANSACTION) {
        // Those to MULTI, to each command behind it, and to EXEC.
        Some(commands) => commands.saturating_add(2),
        None => 1,
    }
}

/// The number of the command of a complete array, [`UNKNOWN`] if there is none with this name, and the number
/// of its arguments.
pub fn find(message: &[u8]) -> (u16, u32) {
    let mut args = Args::of(message);
    let count = args.left();
    let Some(number) = args.text().and_then(Command::find) else {
        return (UNKNOWN, count);
    };
    let sub = Command::of(number).filter(|command| !command.subcommands().is_empty());
    let sub = sub.and_then(|command| command.find_sub(args.text()?));
    (sub.unwrap_or(number), count)
}
