//! The names of a spool's files: `HOUR-EPOCH/TIME-EPOCH-SERVICE-ROUTER-tTHREAD-RANDOM`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use time::OffsetDateTime;

use crate::config::schema::SpoolOptions;

const HOUR: i64 = 3600;
/// The extension of a file with the rest of another one, until it replaces that.
pub(super) const REST: &str = "rest";

/// The path of a new file. Time is UTC.
pub(super) fn path(options: &SpoolOptions, now: SystemTime, random: u64) -> PathBuf {
    let now = OffsetDateTime::from(now);
    let epoch = now.unix_timestamp();
    let hour = epoch - epoch.rem_euclid(HOUR);
    let day = format!(
        "{:04}{:02}{:02}T{:02}",
        now.year(),
        u8::from(now.month()),
        now.day(),
        now.hour()
    );
    let router = &options.router;
    options.dir.join(format!("{day}-{hour}")).join(format!(
        "{day}{:02}{:02}-{epoch}-mcrouter-{router}-t0-{random:016x}",
        now.minute(),
        now.second()
    ))
}

/// The files that a process of the same router has left, whatever their order.
///
/// # Errors
/// The folder is there and cannot be read.
pub(super) fn left(options: &SpoolOptions) -> io::Result<Vec<PathBuf>> {
    let ours = format!("-mcrouter-{}-", options.router);
    let mut found = Vec::new();
    for hour in list(&options.dir)? {
        if !hour.is_dir() {
            continue;
        }
        let names = list(&hour)?.into_iter().filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.contains(&ours) && !name.ends_with(REST))
        });
        found.extend(names.filter(|path| path.is_file()));
    }
    Ok(found)
}

fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}

/// Removes a file, and its folder if it was the last one in it.
pub(super) fn remove(file: &Path) -> io::Result<()> {
    fs::remove_file(file)?;
    if let Some(hour) = file.parent() {
        // It most often has other files.
        let _ = fs::remove_dir(hour);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_files_name_is_mcrouters_and_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let options = |router: &str| SpoolOptions {
            dir: dir.path().to_owned(),
            is_second_form: false,
            port: None,
            router: router.into(),
            region: ".".into(),
            cluster: ".".into(),
        };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_003_661);
        let file = path(&options("5000"), now, 0xabc);
        let name = file
            .strip_prefix(dir.path())
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        assert_eq!(
            name,
            "20231114T23-1700002800/20231114T231421-1700003661-mcrouter-5000-t0-0000000000000abc"
        );
        fs::create_dir(file.parent().unwrap()).unwrap();
        fs::write(&file, "").unwrap();
        assert_eq!(left(&options("5000")).unwrap(), std::slice::from_ref(&file));
        assert!(left(&options("500")).unwrap().is_empty());
        remove(&file).unwrap();
        assert!(!file.parent().unwrap().exists());
    }
}
