//! Connections on which the proxy has logged in with its clients' logins.

use std::{thread, time::Duration};

use proxima::config::schema::Limits;

use crate::{
    client::Client,
    conversation::over,
    lines::LINES,
    proxy::{PATIENT, Proxy},
    server,
};

fn one(route: &str, test: impl Fn(&Proxy)) {
    over(route, &[|| server::start("one")], PATIENT, &LINES, test);
}

/// The login and the connection that the server reports.
fn whoami(client: &mut Client) -> (String, String) {
    client.say("WHOAMI k\n").unwrap();
    loop {
        let line = client.hear().unwrap();
        if let Some((name, connection)) = line.strip_prefix("= ").and_then(|line| line.split_once(", ")) {
            return (name.to_owned(), connection.to_owned());
        }
    }
}

fn as_user(proxy: &Proxy, name: &str) -> Client {
    let mut client = Client::new(proxy.address);
    assert_eq!(client.ask(&format!("USE {name}")).unwrap(), "+");
    client
}

#[test]
fn requests_go_to_lanes_with_their_clients_login() {
    for route in ["p", "{failover: p}", "{log: p}", "{all_sync: p}"] {
        one(route, |proxy| {
            let mut nobody = Client::new(proxy.address);
            let [mut ann, mut other, mut bob] = ["ann", "ann", "bob"].map(|name| as_user(proxy, name));
            let shared = whoami(&mut nobody);
            let anns = whoami(&mut ann);
            assert_eq!((shared.0.as_str(), anns.0.as_str()), ("nobody", "ann"), "{route}");
            assert_eq!(whoami(&mut other), anns, "they share it");
            assert_eq!(whoami(&mut bob).0, "bob");
            assert_eq!(whoami(&mut nobody), shared);
            assert_eq!(proxy.metrics().open_lanes, 3);
            // Everything is sent at once. Requests before the switch keep the old login.
            nobody
                .say("WHOAMI k\nWHOAMI k\nUSE bob\nWHOAMI k\nUSE \nWHOAMI k\n")
                .unwrap();
            for expected in ["= nobody", "= nobody", "+", "= bob", "+", "= nobody"] {
                let line = nobody.hear().unwrap();
                assert!(
                    line.starts_with(expected),
                    "{route}: {line} instead of {expected}"
                );
            }
        });
    }
}

/// Large replies take lanes over and release them.
#[test]
fn bulk_and_dedicated_lanes_keep_to_their_clients_login() {
    one("p", |proxy| {
        let names = ["ann", "bob", "cid", "dan", "eve", "fay"];
        let mut clients = names.map(|name| as_user(proxy, name));
        for round in 0..20 {
            for client in &mut clients {
                client.say("MANY k 3000\n").unwrap();
                if round % 2 == 0 {
                    client.say("HOLD k\nWHOAMI k\nFREE k\n").unwrap();
                }
                client.say("WHOAMI k\n").unwrap();
            }
            for (client, name) in clients.iter_mut().zip(names) {
                let mut parts = 0;
                while parts <= 3000 {
                    // Pushes of its earlier dedicated lane may still come.
                    parts += usize::from(client.hear().unwrap().starts_with(['-', '.']));
                }
                let times = if round % 2 == 0 { 2 } else { 1 };
                let mut heard = 0;
                while heard < times {
                    let line = client.hear().unwrap();
                    assert!(!line.starts_with('?'), "{line}");
                    if line.starts_with("= ") {
                        assert!(line.starts_with(&format!("= {name}, ")), "{line} and not {name}");
                        heard += 1;
                    }
                }
            }
        }
    });
}

#[test]
fn the_number_of_logins_is_bounded_and_unused_ones_make_room() {
    one("p", |proxy| {
        // One host leaves some for others.
        let most = Limits::DEFAULT.logins * 3 / 4;
        let mut clients: Vec<Client> = (0..most).map(|n| as_user(proxy, &format!("user{n}"))).collect();
        for (n, client) in clients.iter_mut().enumerate() {
            assert_eq!(whoami(client).0, format!("user{n}"));
        }
        let mut late = Client::new(proxy.address);
        assert_eq!(
            late.ask("USE late").unwrap(),
            "? proxy: clients log in as too many"
        );
        assert!(late.is_closed());
        assert_eq!(whoami(&mut as_user(proxy, "user7")).0, "user7");
        clients.truncate(10);
        let retires = (0..1000).any(|_| {
            thread::sleep(Duration::from_millis(10));
            proxy.metrics().open_lanes <= 11
        });
        assert!(retires, "{} lanes", proxy.metrics().open_lanes);
        assert_eq!(whoami(&mut as_user(proxy, "late")).0, "late");
        assert_eq!(whoami(&mut clients[9]).0, "user9");
    });
}
