//! Lists that never end, and links that lead elsewhere.

use crate::hostile::command::{Judged, folder, judge, judge_in, write};
use crate::hostile::pages::{flow, ok, page};
use crate::hostile::target::{Act, Asked, Target};
use crate::hostile::wire::{Due, check};

/// A target whose pages are linked as the function says, from the number of the request.
fn linked(next: impl Fn(&str, &Asked) -> String + Send + Sync + 'static) -> Target {
    Target::answering(move |asked| {
        let origin = format!("http://{}", asked.header("Host"));
        let next = next(&origin, asked);
        let page = page(&origin, asked.number - 1, Some(&next));
        vec![Act::Send(ok(page.to_string())), Act::Keep]
    })
}

fn walk(target: &Target) -> Judged {
    judge(target, "flow/read-flows/walk")
}

#[test]
fn cycles_are_told_and_left() {
    for length in [1, 2] {
        let target = linked(move |origin, asked| {
            let turn = asked.number % length;
            format!("{origin}/flow/v1/Flows?PageSize=2&Page={turn}&PageToken=t{turn}")
        });
        check("cycle", &walk(&target), Due::Fails("a cycle at "));
        assert!(target.asked().len() <= length + 2, "{:?}", target.asked());
    }
}

#[test]
fn pages_without_end_are_left_after_a_thousand() {
    let target = linked(|origin, asked| {
        format!(
            "{origin}/flow/v1/Flows?PageSize=2&Page={0}&PageToken=t{0}",
            asked.number
        )
    });
    let judged = walk(&target);
    assert_eq!(judged.ended.exit, Some(1), "{}", judged.ended.stdout);
    assert!(
        judged.json.contains("1000 pages, 1000 items, and no end"),
        "{}",
        judged.ended.stdout
    );
    assert_eq!(target.asked().len(), 1000);
    assert!(
        judged.ended.peak_kib <= 128 * 1024,
        "{} KiB",
        judged.ended.peak_kib
    );
}

#[test]
fn large_pages_without_end_are_left_before_they_fill_the_memory() {
    let target = Target::answering(|asked| {
        let origin = format!("http://{}", asked.header("Host"));
        let next = format!(
            "{origin}/flow/v1/Flows?PageSize=2&Page={0}&PageToken=t{0}",
            asked.number
        );
        let mut page = page(&origin, asked.number - 1, Some(&next));
        let many = (0..4_000).map(|n| flow("http://h", asked.number * 4_000 + n));
        page["flows"] = many.collect();
        vec![Act::Send(ok(page.to_string())), Act::Keep]
    });
    let folder = folder();
    write(
        &folder.path().join("conformant.yaml"),
        "limits: {timeout: 20s}\n",
    );
    let judged = judge_in(
        folder.path(),
        &format!("flow={}/flow", target.origin()),
        "flow/read-flows/walk",
    );
    assert!(
        judged.json.contains("evidence-over-limit(10 MiB)"),
        "{}",
        judged.ended.stdout
    );
    assert!(
        matches!(judged.ended.exit, Some(1 | 3)),
        "{}",
        judged.ended.stdout
    );
    assert!(target.asked().len() <= 12, "{}", target.asked().len());
    assert!(
        judged.ended.peak_kib <= 128 * 1024,
        "{} KiB",
        judged.ended.peak_kib
    );
}

#[test]
fn links_to_anywhere_else_are_told_and_never_followed() {
    let stranger = Target::answering(|_| vec![Act::Send(ok("{}"))]);
    let elsewhere = stranger.origin();
    let authority = elsewhere.trim_start_matches("http://").to_owned();
    let links = [
        (
            format!("{elsewhere}/flow/v1/Flows?Page=1"),
            "another origin",
        ),
        (
            format!("//{authority}/flow/v1/Flows?Page=1"),
            "another origin",
        ),
        (
            format!("https://{authority}/flow/v1/Flows"),
            "another origin",
        ),
        (format!("\\\\{authority}\\flow"), "another origin"),
        (
            format!("http://user:secret@{authority}/"),
            "it carries credentials",
        ),
        ("file:///etc/passwd".to_owned(), "another origin"),
        ("data:application/json,{}".to_owned(), "another origin"),
        ("javascript:alert(1)".to_owned(), "another origin"),
        (
            format!("/flow\r\nHost: {authority}\r\n\r\n"),
            "control characters",
        ),
        (
            format!("/flow/v1/Flows?Page={}", "1".repeat(9000)),
            "longer than 8 KiB",
        ),
        ("http://[::1".to_owned(), "it is no URL"),
    ];
    for (link, why) in links {
        let shown = link.clone();
        let target = linked(move |_, _| link.clone());
        let judged = walk(&target);
        check(&shown, &judged, Due::Fails(why));
        assert_eq!(target.asked().len(), 1, "{shown}");
    }
    let same_authority = linked(move |origin, _| format!("{origin}@{authority}/flow"));
    check(
        "userinfo",
        &walk(&same_authority),
        Due::Fails("it carries credentials"),
    );
    assert_eq!(
        stranger.connections(),
        0,
        "nothing but the target is ever contacted"
    );
}
