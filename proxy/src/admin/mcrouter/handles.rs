//! The way of a request, in the words of mcrouter.

use crate::route::{Explained, Step};

/// The addresses of the servers to which a request may go, one on each line.
pub(super) fn servers(explained: &Explained) -> String {
    let members = explained.steps.iter().filter(|step| step.name == "member");
    let addresses: Vec<&str> = members.filter_map(|step| step.end.as_deref()).collect();
    addresses.join("\r\n")
}

/// The handles that a request may meet, each below the one that leads to it.
pub(super) fn tree(explained: &Explained) -> String {
    let mut lines = vec!["proxy".to_owned(), " root".to_owned()];
    // A step without a name says more about the one before.
    let steps = explained.steps.iter().filter(|step| !step.name.is_empty());
    lines.extend(steps.map(|step| format!("{:indent$}{}", "", name(step), indent = step.depth + 1)));
    lines.join("\n")
}

fn name(step: &Step) -> String {
    match (step.name, step.end.as_deref()) {
        ("member", Some(address)) => address.to_owned(),
        ("error", Some(text)) => format!("error|mc_res_local_error|{text}"),
        ("log", _) => "logging".to_owned(),
        (name, _) => name.replace('_', "-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(depth: usize, name: &'static str, end: Option<&str>) -> Step {
        Step {
            depth,
            note: "",
            name,
            text: String::new(),
            node: None,
            end: end.map(str::to_owned),
        }
    }

    #[test]
    fn steps_become_lines_and_servers() {
        let explained = Explained {
            title: "get a".to_owned(),
            steps: vec![
                step(1, "log", None),
                step(2, "all_sync", None),
                step(3, "member", Some("h:1")),
                step(4, "", None),
                step(3, "member", Some("h:2")),
                step(3, "error", Some("x")),
            ],
        };
        let expected =
            "proxy\n root\n  logging\n   all-sync\n    h:1\n    h:2\n    error|mc_res_local_error|x";
        assert_eq!(tree(&explained), expected);
        assert_eq!(servers(&explained), "h:1\r\nh:2");
    }
}
