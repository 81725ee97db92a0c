//! The format of metrics that a scraper takes, by its `Accept` header.

/// A format in which metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    OpenMetrics,
    /// Prometheus's text format 0.0.4, the older one, which is all that many scrapers read.
    Classic,
}

impl Format {
    /// The format that `accept` prefers. It is OpenMetrics where the header has no preference or is missing,
    /// and the classic one where it accepts neither.
    pub(super) fn preferred(accept: Option<&str>) -> Self {
        let Some(accept) = accept else {
            return Self::OpenMetrics;
        };
        let openmetrics = quality(accept, ["application", "openmetrics-text"]);
        if openmetrics > 0.0 && openmetrics >= quality(accept, ["text", "plain"]) {
            Self::OpenMetrics
        } else {
            Self::Classic
        }
    }

    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Classic => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The weight of this type in the header, from the entry that names it most exactly. The greatest weight
/// counts where several entries do, which differ in versions. 0: the type is not accepted.
fn quality(accept: &str, [kind, subtype]: [&str; 2]) -> f64 {
    let mut best = (0, 0.0);
    for entry in accept.split(',') {
        let mut parts = entry.split(';').map(str::trim);
        let Some((its_kind, its_subtype)) = parts.next().and_then(|range| range.split_once('/')) else {
            continue;
        };
        let is = |wanted: &str, said: &str| said.eq_ignore_ascii_case(wanted);
        let exactness = match (its_kind, its_subtype) {
            ("*", "*") => 1,
            (_, "*") if is(kind, its_kind) => 2,
            _ if is(kind, its_kind) && is(subtype, its_subtype) => 3,
            _ => continue,
        };
        let weight =
            parts.find_map(|parameter| parameter.strip_prefix("q=").or(parameter.strip_prefix("Q=")));
        let weight = weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0));
        if exactness > best.0 || exactness == best.0 && weight > best.1 {
            best = (exactness, weight);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::Format::{self, Classic, OpenMetrics};

    #[test]
    fn accept_header_chooses_the_format() {
        for (accept, expected) in [
            // Prometheus 2 and 3.
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
                 text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                OpenMetrics,
            ),
            // VictoriaMetrics.
            ("text/plain;version=0.0.4;q=1,*/*;q=0.1", Classic),
            // Older Prometheus, which reads protobuf.
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,\
                 text/plain;version=0.0.4;q=0.3",
                Classic,
            ),
            ("text/plain", Classic),
            ("TEXT/Plain; Version=0.0.4", Classic),
            ("text/*;q=0.5, application/openmetrics-text;q=0.4", Classic),
            ("application/openmetrics-text", OpenMetrics),
            ("application/openmetrics-text;q=0, */*", Classic),
            (
                "text/plain;q=0.5, application/openmetrics-text; q=0.5",
                OpenMetrics,
            ),
            // curl, and clients without the header.
            ("*/*", OpenMetrics),
            // Neither format: people can read the classic one in a browser.
            ("application/json", Classic),
            ("text/html;q=x,,;/, q=0.1", Classic),
            ("", Classic),
        ] {
            assert_eq!(Format::preferred(Some(accept)), expected, "{accept}");
        }
        assert_eq!(Format::preferred(None), OpenMetrics);
    }
}
