//! TLS: certificates, and handshakes.

use crate::{
    admin::page::{Page, quoted},
    control::Proxy,
    metrics::Metrics,
};

/// Rows of TLS, where it is spoken.
pub(super) fn tls(proxy: &Proxy, metrics: &Metrics, page: &mut Page) {
    let certificates = proxy.certificates();
    let validities = certificates.validities();
    if validities.is_empty() {
        return;
    }
    let labels = |file: &std::path::Path| format!("file=\"{}\"", quoted(&file.display().to_string()));
    let name = "tls_certificate_expiry_timestamp_seconds";
    page.family(
        name,
        "gauge",
        "When the certificates in use from this file end: the first of them, in seconds since 1970.",
    );
    for (file, validity) in &validities {
        page.row(name, &labels(file), validity.until);
    }
    let name = "tls_certificate_current";
    page.family(name, "gauge", "Is what this file says now in use?");
    for (file, validity) in &validities {
        page.row(name, &labels(file), u8::from(validity.is_current));
    }
    let [renewed, refused] = certificates.looks();
    page.counter(
        "tls_certificate_reloads",
        "Times that certificates were used anew because their files had changed.",
        renewed,
    );
    page.counter(
        "tls_certificate_failures",
        "Times that changed files of certificates could not be used.",
        refused,
    );
    let sides = [
        ("clients", &metrics.tls.clients),
        ("servers", &metrics.tls.servers),
    ];
    page.family(
        "tls_handshakes",
        "counter",
        "Handshakes by result: two good ones, or why they came to nothing.",
    );
    for (side, counts) in sides {
        for (result, count) in counts.results() {
            page.row(
                "tls_handshakes_total",
                &format!("side=\"{side}\",result=\"{result}\""),
                count,
            );
        }
    }
    page.family(
        "tls_cuts",
        "counter",
        "Connections that the other end closed without a goodbye, after the handshake.",
    );
    for (side, counts) in sides {
        page.row("tls_cuts_total", &format!("side=\"{side}\""), counts.cut);
    }
}
