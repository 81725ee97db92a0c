//! The command line.

use std::fs;

use proxima::frontdoor::nutcracker::{Refused, Run, Start, start};

use crate::{pool, rows::each_row};

fn said(arguments: &[&str]) -> Result<Start, Refused> {
    start(arguments.iter().map(|argument| (*argument).to_owned()))
}

fn printed(arguments: &[&str]) -> String {
    match said(arguments).unwrap() {
        Start::Print(text) => text,
        Start::Run(_) => panic!("it runs"),
    }
}

fn run(arguments: &[&str]) -> Run {
    match said(arguments).unwrap() {
        Start::Run(run) => *run,
        Start::Print(text) => panic!("printed {text:?}"),
    }
}

#[test]
fn nutcracker_says_its_version_help_and_statistics() {
    let version = "This is nutcracker-0.5.0\nasync event backend: epoll\n\n";
    for arguments in [
        &["-V"][..],
        &["--version"],
        &["-dV"],
        &["-t", "-V"],
        &["-V", "--", "-x"],
        &["x", "-V"],
    ] {
        assert_eq!(printed(arguments), version, "{arguments:?}");
    }
    for arguments in [&["-h"][..], &["--help"], &["-V", "-h"]] {
        let help = printed(arguments);
        assert!(
            help.starts_with(&format!("{version}Usage: nutcracker [-?hVdDt]")),
            "{help}"
        );
        assert!(help.contains("\n  -s, --stats-port=N     : set stats monitoring port (default: 22222)\n"));
    }
    for arguments in [&["-D"][..], &["--describe-stats"], &["--desc"]] {
        let stats = printed(arguments);
        assert!(
            stats.starts_with(&format!(
                "{version}pool stats:\n  client_eof          \"# eof on client"
            )),
            "{stats}"
        );
    }
}

#[test]
fn options_that_nutcracker_refuses_are_refused_with_its_words() {
    let rows = [
        (&["-x"][..], "invalid option -- 'x'"),
        (&["-?"], "invalid option -- '?'"),
        (&["-tx"], "invalid option -- 'x'"),
        (&["--foo"], "invalid option -- '\0'"),
        (&["--stats=1"], "invalid option -- '\0'"),
        (&["--test-conf=1"], "invalid option -- 't'"),
        (&["-s"], "option -s requires a number"),
        (&["--stats-port"], "option -s requires a number"),
        (&["-sabc"], "option -s requires a number"),
        (&["-s", "99999"], "option -s value 99999 is not a valid port"),
        (&["-s", "0"], "option -s value 0 is not a valid port"),
        (
            &["-s", "99999999999999999999"],
            "option -s value 1661992959 is not a valid port",
        ),
        (&["-i", "-5"], "option -i requires a number"),
        (&["-v", "-1"], "option -v requires a number"),
        (&["--verbose=x"], "option -v requires a number"),
        (&["-m"], "option -m requires a number"),
        (&["-m", "0"], "option -m requires a non-zero number"),
        (&["-m", "abc"], "option -m requires a non-zero number"),
        (
            &["-m", "511"],
            "mbuf chunk size must be between 512 and 16777216 bytes",
        ),
        (
            &["-m", "16777217"],
            "mbuf chunk size must be between 512 and 16777216 bytes",
        ),
        (&["-p"], "option -p requires a file name"),
        (&["-c"], "option -c requires a file name"),
        (&["-o"], "option -o requires a file name"),
        (&["-a"], "option -a requires a string"),
        (&["--admin"], "option --admin requires a string"),
        (
            &["--admin=x"],
            "option --admin requires an address to listen on (host:port), and `x` is none",
        ),
        (&["--io=x"], "option --io: `x` is none of auto, io_uring, epoll"),
        (
            &["--workers=0"],
            "option --workers requires a number from 1 to 1024",
        ),
        (&["--workers=x"], "option --workers requires a number"),
    ];
    each_row(rows, |(arguments, expected)| {
        let refused = said(arguments).unwrap_err().to_string();
        let expected = format!("nutcracker: {expected}\nUsage: nutcracker [");
        assert!(refused.starts_with(&expected), "{arguments:?}: {refused}");
    });
}

#[test]
fn a_file_is_tested_with_the_words_that_scripts_look_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nutcracker.yml");
    let file = path.display().to_string();
    let missing = said(&["-t", "-c", &file]).unwrap_err().to_string();
    let invalid = format!("nutcracker: configuration file '{file}' syntax is invalid\n");
    assert_eq!(missing.matches(&invalid).count(), 1, "{missing}");
    fs::write(&path, pool("  hash: x\n")).unwrap();
    let bad = said(&["-tc", &file]).unwrap_err().to_string();
    assert_eq!(bad.matches(&invalid).count(), 2, "{bad}");
    assert!(
        bad.starts_with(&format!("{file}:3:9: a.hash: expected a hash")),
        "{bad}"
    );
    let bad = said(&["-c", &file]).unwrap_err().to_string();
    assert_eq!(bad.matches(&invalid).count(), 1, "{bad}");
    fs::write(&path, pool("")).unwrap();
    let good = format!("nutcracker: configuration file '{file}' syntax is ok\n");
    assert_eq!(printed(&["--test-conf", &format!("--conf-file={file}")]), good);
}

#[test]
fn options_of_nutcracker_and_ours_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nutcracker.yml");
    fs::write(&path, pool("")).unwrap();
    let file = path.display().to_string();
    let plain = run(&["-c", &file]);
    assert_eq!((plain.verbosity, plain.log_file), (5, None));
    let config = plain.loaded.config;
    assert_eq!((config.admin, config.workers), (None, None));
    let all = [
        "-v",
        "11",
        "-o",
        "/tmp/log",
        "-c",
        &file,
        "-s",
        "22223",
        "-a",
        "127.0.0.1",
        "-i",
        "1",
        "-m",
        "512",
    ];
    let ours = ["--admin=127.0.0.1:9150", "--workers", "4", "--io=epoll"];
    let run = run(&[&all[..], &ours].concat());
    assert_eq!((run.verbosity, run.log_file), (11, Some("/tmp/log".into())));
    let config = run.loaded.config;
    assert_eq!(
        (config.admin.as_deref(), config.workers),
        (Some("127.0.0.1:9150"), Some(4))
    );
    assert_eq!(run.loaded.files_watched, [path]);
}
