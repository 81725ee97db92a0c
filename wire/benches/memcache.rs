//! What one message costs the memcached codec: `cargo bench -p proxima-wire --bench memcache`.

use divan::{Bencher, black_box};
use proxima_wire::memcache::{
    Command, Limits, Rewrite, default_reply, key, reply, request, rewrite, rewrite_reply_key,
};
use proxima_wire::message::{Parsed, Request};

/// Forty bytes, as the product's figures are measured with.
const KEY: &str = "0123456789012345678901234567890123456789";

fn main() {
    divan::main();
}

fn line(form: &str) -> Vec<u8> {
    // More bytes follow, as they do in a pipeline.
    format!("{}\r\n{}", form.replace("KEY", KEY), "x".repeat(400)).into_bytes()
}

fn parsed(bytes: &[u8]) -> Request {
    match request(bytes, &Limits::default()) {
        Parsed::Head(request) => request,
        other => panic!("{other:?}"),
    }
}

#[divan::bench(args = [
    "get KEY", "get k", "gets KEY KEY KEY KEY KEY KEY KEY KEY KEY KEY", "gat 60 KEY", "set KEY 0 0 400",
    "set KEY 0 0 400 noreply", "cas KEY 0 0 400 12345678", "delete KEY", "incr KEY 1", "touch KEY 60", "mg KEY v",
    "mg KEY v f t c k q O1234", "ms KEY 400 T60 F1", "md KEY q", "ma KEY N0 J1 D1", "mn", "version",
])]
fn requests(bencher: Bencher<'_, '_>, form: &str) {
    let (bytes, limits) = (line(form), Limits::default());
    bencher.bench_local(|| request(black_box(&bytes), black_box(&limits)));
}

/// Half a line: what asking too early costs.
#[divan::bench(args = ["get KE", "set KEY 0 0 4"])]
fn incomplete(bencher: Bencher<'_, '_>, form: &str) {
    let bytes = form.replace("KEY", KEY).into_bytes();
    let limits = Limits::default();
    bencher.bench_local(|| request(black_box(&bytes), black_box(&limits)));
}

#[divan::bench(args = [
    ("get", "VALUE KEY 0 400"), ("gets", "VALUE KEY 0 400 12345678"), ("get", "END"), ("set", "STORED"), ("incr", "12345"),
    ("delete", "NOT_FOUND"), ("mg", "VA 400 f0 t-1"), ("mg", "HD"), ("mg", "EN"), ("ms", "HD"), ("get", "SERVER_ERROR busy"),
])]
fn replies(bencher: Bencher<'_, '_>, (name, form): (&str, &str)) {
    let (bytes, command) = (line(form), Command::by_name(name).unwrap());
    bencher.bench_local(|| reply(black_box(command), black_box(&bytes)));
}

#[divan::bench(args = ["set KEY 0 0 400 noreply", "mg KEY v q k", "ms KEY 400 q"])]
fn without_quiet(bencher: Bencher<'_, '_>, form: &str) {
    let bytes = line(form);
    let (request, mut out) = (parsed(&bytes), Vec::with_capacity(1024));
    bencher.bench_local(|| {
        out.clear();
        rewrite(
            black_box(&request),
            black_box(&bytes),
            &Rewrite::default(),
            &mut out,
        )
    });
}

#[divan::bench(args = ["get KEY", "set KEY 0 0 400", "ms KEY 400 T60 F1"])]
fn with_other_key_and_ttl(bencher: Bencher<'_, '_>, form: &str) {
    let bytes = line(form);
    let (request, mut out) = (parsed(&bytes), Vec::with_capacity(1024));
    let change = Rewrite {
        key: Some(b"another:key"),
        ttl: Some(3600),
    };
    bencher.bench_local(|| {
        out.clear();
        rewrite(
            black_box(&request),
            black_box(&bytes),
            black_box(&change),
            &mut out,
        )
    });
}

#[divan::bench(args = [("get", "VALUE KEY 0 400"), ("mg", "VA 400 f0 kKEY O1")])]
fn own_key_into_reply(bencher: Bencher<'_, '_>, (name, form): (&str, &str)) {
    let (bytes, command, mut out) = (
        line(form),
        Command::by_name(name).unwrap(),
        Vec::with_capacity(1024),
    );
    bencher.bench_local(|| {
        out.clear();
        rewrite_reply_key(black_box(command), b"own", black_box(&bytes), &mut out);
    });
}

#[divan::bench(args = ["get KEY", "mg KEY v k O1"])]
fn miss(bencher: Bencher<'_, '_>, form: &str) {
    let bytes = line(form);
    let (request, mut out) = (parsed(&bytes), Vec::with_capacity(1024));
    bencher.bench_local(|| {
        out.clear();
        default_reply(black_box(&request), black_box(&bytes), &mut out)
    });
}

#[divan::bench(args = ["get KEY", "mg MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OQ== b v"])]
fn routing_key(bencher: Bencher<'_, '_>, form: &str) {
    let bytes = line(form);
    let request = parsed(&bytes);
    bencher.bench_local(|| key(black_box(&request), black_box(&bytes), &mut [0; 250]).len());
}
