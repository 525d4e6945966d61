//! Tests of `spelling`.

use crate::bad_files::{files, load};
use conformant_rulebook::{duration, interpolations, kebab, shift};
use std::time::Duration;

#[test]
fn names_become_kebab_case() {
    for (name, id) in [
        ("unique_name", "unique-name"),
        ("UniqueName", "unique-name"),
        ("user[cellphone]", "user-cellphone"),
        ("Configuration.Url", "configuration-url"),
        ("X-Platform-Webhook-Enabled", "x-platform-webhook-enabled"),
        ("_app_serial_id", "app-serial-id"),
        ("AUTH_ID", "auth-id"),
        ("FORMAT", "format"),
        ("MessageSent", "message-sent"),
        ("MediaSID2x", "media-sid2x"),
        ("size_limit_mb", "size-limit-mb"),
    ] {
        assert_eq!(kebab(name), id);
    }
}

#[test]
fn ids_are_kebab_case_paths() {
    /// Why the loader refuses a rule of that id; nothing if there is a rule.
    fn refused(id: &str) -> Option<String> {
        let mut files = files();
        let (_, rules) = &mut files[3];
        *rules = rules.replace("id: flow/flow/same", &format!("id: \"{id}\""));
        load(&files).err().map(|problems| problems.to_string())
    }
    assert_eq!(refused("flow/flow-v3/unique-name"), None);
    for wrong in ["flow", "Flow/x", "flow//x", "flow/x_y", "flow/-x", "/x"] {
        let invalid = format!("invalid id `{wrong}`: expected a path in kebab case");
        let problems = refused(wrong).expect("it is refused");
        assert!(problems.contains(&invalid), "{problems}");
    }
}

#[test]
fn durations_have_a_unit() {
    assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
    assert_eq!(duration("5m"), Some(Duration::from_secs(300)));
    assert_eq!(duration("-5m"), None);
    let earlier = shift("-5m").unwrap();
    assert!(earlier.negative && earlier.length == Duration::from_secs(300));
    for wrong in ["", "5", "s", "5 s", "1.5s", "5sec", "99999999999999999999s"] {
        assert_eq!(shift(wrong), None, "{wrong}");
    }
}

#[test]
fn interpolations_are_paths() {
    let found = interpolations("a ${x.y.0} b${index}").unwrap();
    assert_eq!(found[0].path, ["x", "y", "0"]);
    assert_eq!((found[1].start, found[1].end), (12, 20));
    for wrong in ["${", "${}", "${a b}", "${a..b}", "${a|upper}"] {
        assert!(interpolations(wrong).is_err(), "{wrong}");
    }
}
