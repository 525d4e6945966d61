//! Links that the target hands out: followed only on the origin they came from.

use url::Url;

/// The longest link that is followed.
const LINK_BYTES_MAX: usize = 8 * 1024;

/// Path and query of a link on `origin` (scheme, host and port), to which a relative one is
/// resolved; else why it must not be followed.
pub(super) fn target_of(origin: &str, link: &str) -> Result<String, &'static str> {
    if link.len() > LINK_BYTES_MAX {
        return Err("longer than 8 KiB");
    }
    if link.chars().any(char::is_control) {
        return Err("it has control characters");
    }
    let home = Url::parse(origin).map_err(|_| "the target has no origin")?;
    let parsed = home.join(link).map_err(|_| "it is no URL")?;
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("it carries credentials");
    }
    if parsed.origin() != home.origin() {
        return Err("it leads to another origin");
    }
    Ok(parsed[url::Position::BeforePath..url::Position::AfterQuery].to_owned())
}

#[cfg(test)]
mod tests {
    use super::target_of;

    #[test]
    fn only_links_on_the_same_origin_are_followed() {
        let origin = "http://127.0.0.1:8080";
        assert_eq!(
            target_of(origin, "http://127.0.0.1:8080/v1/Flows?Page=1").as_deref(),
            Ok("/v1/Flows?Page=1")
        );
        assert_eq!(
            target_of(origin, "/v1/Flows?Page=1").as_deref(),
            Ok("/v1/Flows?Page=1")
        );
        for hostile in [
            "//elsewhere.invalid/x",
            "https://127.0.0.1:8080/x",
            "http://127.0.0.1:8081/x",
            "http://user@127.0.0.1:8080/x",
            "http://127.0.0.1:8080@elsewhere.invalid/x",
            "file:///etc/passwd",
            "http://127.0.0.1:8080/\r\nHost: x",
        ] {
            assert!(target_of(origin, hostile).is_err(), "{hostile}");
        }
    }
}
