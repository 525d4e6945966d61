//! Endless lists, and links to other places.

use crate::hostile::command::{Judged, judge, judge_in};
use crate::hostile::pages::{flow, ok, page};
use crate::hostile::target::{Act, Asked, Target, keep};
use crate::hostile::wire::{Due, check};
use crate::program::{Folder, one_in};

/// A target with page links from the function, by the number of the request.
fn linked(next: impl Fn(&str, &Asked) -> String + Send + Sync + 'static) -> Target {
    Target::answering(move |asked| {
        let origin = format!("http://{}", asked.header("Host"));
        let next = next(&origin, asked);
        let page = page(&origin, asked.number - 1, Some(&next));
        keep(ok(page.to_string()))
    })
}

fn walk(target: &Target) -> Judged {
    judge(target, "flow/read-flows/walk")
}

#[test]
fn page_cycles_are_reported_and_left() {
    for length in [1, 2] {
        let target = linked(move |origin, asked| {
            let turn = asked.number % length;
            format!("{origin}/flow/v1/Flows?PageSize=2&Page={turn}&PageToken=t{turn}")
        });
        check("cycle", &walk(&target), Due::Fails("a cycle at "));
        assert!(target.asked().len() <= length + 2, "{:?}", target.asked());
    }
}

/// A long walk starts with the requested small pages, and again with larger ones.
const WALK_PAGES: usize = 20 + 1000;

/// The number of requests for pages. While all scenarios wait, the last request is repeated to see whether the target is there.
fn pages_asked(target: &Target) -> usize {
    let first_line = |asked: Asked| asked.head.lines().next().unwrap_or_default().to_owned();
    let mut targets: Vec<String> = target.asked().into_iter().map(first_line).collect();
    targets.dedup();
    targets.len()
}

/// A list of flows with a page size, up to the page `last`; each flow can be fetched.
fn long_list(each: usize, last: usize) -> Target {
    Target::answering(move |asked| {
        let origin = format!("http://{}", asked.header("Host"));
        if asked.head.contains("/v1/Flows/FW") {
            return keep(ok(flow(&origin, 4_999).to_string()));
        }
        let token = asked.head.split("PageToken=t").nth(1).unwrap_or("0");
        let digits: String = token.chars().take_while(char::is_ascii_digit).collect();
        let number: usize = digits.parse().expect("a token of ours");
        let size = asked.head.split("PageSize=").nth(1).unwrap_or("2");
        let size: String = size.chars().take_while(char::is_ascii_digit).collect();
        let size: u64 = size.parse().expect("a size that was asked for");
        let next = format!(
            "{origin}/flow/v1/Flows?PageSize={size}&Page={0}&PageToken=t{0}",
            number + 1
        );
        let next = (number < last).then_some(next.as_str());
        let mut page = page(&origin, number, next);
        page["meta"]["page_size"] = serde_json::json!(size);
        let items = (0..each).map(|n| flow(&origin, number * each + n));
        page["flows"] = items.collect();
        keep(ok(page.to_string()))
    })
}

fn verdict_of(judged: &Judged, rule: &str) -> (String, String) {
    let rules = judged.record["rules"].as_array().expect("rules");
    let rule = rules.iter().find(|r| r["id"] == rule).expect("the rule");
    let text = |key: &str| rule[key].as_str().unwrap_or_default().to_owned();
    (text("verdict"), text("reason"))
}

#[test]
fn a_list_longer_than_a_walk_is_not_a_finding() {
    let target = long_list(2, 1_500);
    let judged = walk(&target);
    let (verdict, reason) = verdict_of(&judged, "flow/read-flows/walk");
    assert_eq!(verdict, "inconclusive", "{}", judged.ended.stdout);
    assert!(
        reason.contains("1000 pages, 2000 items, and no end"),
        "{reason}"
    );
    let findings = judged.record["findings"].as_array().expect("findings");
    // Its page metadata does not match the requests, which is a warning.
    assert!(findings.iter().all(|f| f["level"] == "should"));
    assert_eq!(pages_asked(&target), WALK_PAGES);
    assert!(
        judged.ended.peak_kib <= 128 * 1024,
        "{} KiB",
        judged.ended.peak_kib
    );
}

#[test]
fn an_incomplete_list_does_not_prove_absence() {
    let folder = Folder::with_limits();
    folder.write(
        "conformant.yaml",
        "limits: {timeout: 20s}\ntargets: {flow: {flow_sid: FW00000000000000000000000000001387}}\n",
    );
    let target = long_list(1, 5_000);
    let url = format!("flow={}/flow", target.origin());
    let judged = judge_in(&folder, &url, "flow/flows/listed");
    let (verdict, reason) = verdict_of(&judged, "flow/read-flows/holds-each-flow");
    assert_eq!(verdict, "inconclusive", "{}", judged.ended.stdout);
    assert!(reason.contains("paging cap reached"), "{reason}");
}

#[test]
fn endless_empty_pages_are_reported() {
    let target = long_list(0, usize::MAX);
    let judged = walk(&target);
    check("nothing", &judged, Due::Fails("the last 999 pages contain"));
    assert_eq!(pages_asked(&target), WALK_PAGES);
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
        keep(ok(page.to_string()))
    });
    let folder = Folder::with_limits();
    folder.write("conformant.yaml", "limits: {timeout: 20s}\n");
    let judged = judge_in(
        &folder,
        &format!("flow={}/flow", target.origin()),
        "flow/read-flows/walk",
    );
    assert!(
        judged.json.contains("evidence-over-limit(8 MiB)"),
        "{}",
        judged.ended.stdout
    );
    // Findings about the pages are reported; that not all of them are kept is not a defect of the target.
    assert_eq!(judged.ended.exit, Some(1), "{}", judged.ended.stdout);
    assert!(target.asked().len() <= 12, "{}", target.asked().len());
    assert!(
        judged.ended.peak_kib <= 128 * 1024,
        "{} KiB",
        judged.ended.peak_kib
    );
}

#[test]
fn links_to_other_places_are_reported_and_never_followed() {
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
        ("file:///etc/passwd".to_owned(), "not an HTTP address"),
        ("data:application/json,{}".to_owned(), "not an HTTP address"),
        ("javascript:alert(1)".to_owned(), "not an HTTP address"),
        (
            format!("/flow\r\nHost: {authority}\r\n\r\n"),
            "control characters",
        ),
        (
            format!("/flow/v1/Flows?Page={}", "1".repeat(9000)),
            "longer than 8 KiB",
        ),
        ("http://[::1".to_owned(), "not a URL"),
    ];
    for (link, why) in one_in(4, links.into()) {
        let shown = link.clone();
        let target = linked(move |_, _| link.clone());
        let judged = walk(&target);
        let due = if why == "another origin" {
            // It may be an address of the target: no finding, and no unreported request.
            assert!(judged.ended.stdout.contains(why), "{shown}");
            Due::Fine
        } else {
            Due::Fails(why)
        };
        check(&shown, &judged, due);
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
