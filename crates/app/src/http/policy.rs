//! Which requests are answered, by their method, path and host.

use std::net::{IpAddr, Ipv6Addr};

use rheostat_observe::openmetrics::Format;

use super::assets::{ASSETS, Asset};

/// What a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The metrics, in this format.
    Metrics(Format),
    /// A file of the live page.
    Asset(&'static Asset),
    /// The live feed.
    Events,
    /// The configuration in force.
    Config,
    /// Nothing, for this reason.
    Refused(Refusal),
}

/// Why a request gets nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Something is to be changed.
    Method,
    /// As many clients listen as may.
    Listeners,
    /// No such page.
    Path,
    /// The request names another host: a page of another site may have made it, whose name was bound to this address later (DNS
    /// rebinding).
    Host,
}

impl Refusal {
    /// The status of the reply (RFC 9110, 15.5) and its text.
    pub(super) fn reply(self) -> (u16, &'static str) {
        match self {
            Refusal::Method => {
                (405, "only GET and HEAD are answered: nothing can be changed here\n")
            }
            Refusal::Path => (
                404,
                "no such page; / is the live page, /metrics the metrics, /config the configuration in force, /events the live \
                 feed\n",
            ),
            Refusal::Listeners => {
                (503, "as many clients follow this instance as may; try again later\n")
            }
            Refusal::Host => (
                421,
                "this instance does not go by the name in the request; use its address, or list the name in `[observe] http_names`\n",
            ),
        }
    }
}

/// The parts of a request that its answer depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'r> {
    pub(super) method: &'r str,
    pub(super) path: &'r str,
    /// The host of the target or, without one, of the header.
    pub(super) host: Option<&'r str>,
    pub(super) accept: Option<&'r str>,
}

impl Asked<'_> {
    /// The answer of an instance that goes by `names` beside all addresses and `localhost`.
    pub(super) fn answer(&self, names: &[String]) -> Answer {
        let host = self.host.map(name_of).unwrap_or_default();
        let is_address = host.parse::<IpAddr>().is_ok();
        let is_ours = is_address || names.iter().any(|name| name.eq_ignore_ascii_case(host));
        match (is_ours || host.eq_ignore_ascii_case("localhost"), self.method, self.path) {
            (false, ..) => Answer::Refused(Refusal::Host),
            (_, "GET" | "HEAD", "/metrics") => Answer::Metrics(Format::preferred(self.accept)),
            (_, "GET" | "HEAD", "/events") => Answer::Events,
            (_, "GET" | "HEAD", "/config") => Answer::Config,
            (_, "GET" | "HEAD", path) => match ASSETS.iter().find(|asset| asset.path == path) {
                Some(asset) => Answer::Asset(asset),
                None => Answer::Refused(Refusal::Path),
            },
            _ => Answer::Refused(Refusal::Method),
        }
    }
}

/// The name or address in a host with or without a port (RFC 3986, 3.2.2).
fn name_of(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    // An IPv6 address without brackets is no host, and has no port that could be cut off.
    match host.rsplit_once(':') {
        Some((name, _)) if host.parse::<Ipv6Addr>().is_err() => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(method: &str, path: &str, host: Option<&str>) -> Answer {
        let names = ["router1.example".to_owned()];
        Asked { method, path, host, accept: None }.answer(&names)
    }

    #[test]
    fn metrics_are_given_under_an_address_or_a_name_of_the_instance() {
        for host in [
            "127.0.0.1:9464",
            "127.0.0.1",
            "[::1]:9464",
            "[fd00::1]",
            "localhost:9464",
            "LOCALHOST",
            "router1.example:9464",
            "Router1.Example",
        ] {
            let given = answer("GET", "/metrics", Some(host));
            assert_eq!(given, Answer::Metrics(Format::Prometheus), "{host}");
        }
        for path in ["/", "/live.css", "/live.js", "/plots.js", "/icon.svg"] {
            let given = answer("HEAD", path, Some("localhost"));
            assert!(matches!(given, Answer::Asset(asset) if asset.path == path), "{path}");
        }
        assert_eq!(answer("GET", "/events", Some("[::1]")), Answer::Events);
        assert_eq!(answer("GET", "/config", Some("[::1]")), Answer::Config);
    }

    #[test]
    fn a_name_of_another_host_is_refused() {
        for host in [
            None,
            Some(""),
            Some("evil.example"),
            Some("evil.example:9464"),
            Some("127.0.0.1.evil.example"),
            Some("localhost.evil.example:80"),
            Some("[::1"),
            Some("xrouter1.example"),
        ] {
            let refused = Answer::Refused(Refusal::Host);
            assert_eq!(answer("GET", "/metrics", host), refused, "{host:?}");
        }
    }

    #[test]
    fn other_methods_and_pages_are_refused() {
        let localhost = Some("localhost");
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get"] {
            assert_eq!(answer(method, "/metrics", localhost), Answer::Refused(Refusal::Method));
        }
        for path in ["/metrics/", "/../etc/passwd", "/Metrics", "", "*"] {
            assert_eq!(answer("GET", path, localhost), Answer::Refused(Refusal::Path), "{path}");
        }
    }
}
