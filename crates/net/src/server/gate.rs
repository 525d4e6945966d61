//! Access check of the control plane (`/_control`, and deleting sandboxes).
//!
//! The control plane changes the state of the reference, so a page in a browser on the same machine must
//! not reach it. Requests from pages of other origins are refused. So are requests under a foreign host
//! name without the token. The services themselves are open: they have their own credentials.

use super::refusal;
use conformant_base::http::{Request, Response};

/// Header with the token.
pub const TOKEN_HEADER: &str = "X-Conformant-Token";

#[derive(Clone, Debug, Default)]
pub(super) struct Gate {
    /// Admits callers that use another host name.
    pub(super) token: Option<String>,
}

impl Gate {
    /// The refusal, if the request is not allowed.
    pub(super) fn refuses(&self, request: &Request) -> Option<Response> {
        let field = |name: &str| request.headers.get(name);
        let host = field("Host").unwrap_or_default();
        if let Some(origin) = field("Origin") {
            let is_own = origin.split_once("://").is_some_and(|(_, own)| own == host);
            if !is_own {
                return Some(refusal(403, "the control plane is closed to other origins"));
            }
        }
        if field("Sec-Fetch-Site").is_some_and(|site| !matches!(site, "same-origin" | "none")) {
            return Some(refusal(403, "the control plane is closed to other sites"));
        }
        let has_token = self.token.is_some() && field(TOKEN_HEADER) == self.token.as_deref();
        if !is_of_this_machine(host) && !has_token {
            let why = "under this host name the control plane requires X-Conformant-Token, which \
                       CONFORMANT_CONTROL_TOKEN sets";
            return Some(refusal(403, why));
        }
        None
    }
}

/// True for requests to the control plane.
pub(super) fn is_control(target: &str) -> bool {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    path.split('/').nth(1) == Some("_control")
}

/// True for names that always mean this machine.
pub(super) fn is_of_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_loopback = |address: std::net::IpAddr| address.is_loopback();
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(fields: &[(&str, &str)], token: Option<&str>) -> Option<u16> {
        let mut request = Request::new("POST", "/_control/reset");
        for (name, value) in fields {
            request.headers.add(name, value);
        }
        let token = token.map(str::to_owned);
        Gate { token }
            .refuses(&request)
            .map(|refusal| refusal.status)
    }

    #[test]
    fn programs_of_this_machine_come_in_and_pages_of_others_do_not() {
        for host in [
            "127.0.0.1:4010",
            "localhost:4010",
            "LOCALHOST",
            "[::1]:4010",
            "127.1.2.3",
        ] {
            assert_eq!(asked(&[("Host", host)], None), None, "{host}");
            let own = format!("http://{host}");
            assert_eq!(asked(&[("Host", host), ("Origin", &own)], None), None);
        }
        let here = ("Host", "127.0.0.1:4010");
        for field in [
            ("Origin", "http://evil.example"),
            ("Origin", "null"),
            ("Origin", "http://127.0.0.1:8080"),
            ("Origin", "http://127.0.0.1:4010.evil.example"),
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Site", "same-site"),
        ] {
            assert_eq!(asked(&[here, field], None), Some(403), "{field:?}");
            assert_eq!(asked(&[here, field], Some("t")), Some(403), "{field:?}");
        }
    }

    #[test]
    fn other_names_of_the_machine_ask_for_the_token() {
        for host in [
            "rebound.example:4010",
            "10.0.0.1:4010",
            "0.0.0.0",
            "127.0.0.1.example.org",
            "",
            "localhost.evil.example",
        ] {
            let host = ("Host", host);
            assert_eq!(asked(&[host], None), Some(403), "{host:?}");
            assert_eq!(asked(&[host, (TOKEN_HEADER, "t")], None), Some(403));
            assert_eq!(asked(&[host, (TOKEN_HEADER, "u")], Some("t")), Some(403));
            assert_eq!(asked(&[host, (TOKEN_HEADER, "t")], Some("t")), None);
        }
    }

    #[test]
    fn the_control_plane_is_known_by_its_path() {
        for (target, is) in [
            ("/_control/reset", true),
            ("/_control", true),
            ("/_control?x", true),
            ("/_controls", false),
            ("/flow/_control", false),
        ] {
            assert_eq!(is_control(target), is, "{target}");
        }
    }
}
