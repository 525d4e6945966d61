//! Responses of the flow service, valid ones and their hostile variants.

use serde_json::{Value, json};

/// A body in a 200 response with a matching length.
pub(crate) fn ok(body: impl AsRef<[u8]>) -> Vec<u8> {
    answer("200 OK", "Content-Type: application/json\r\n", body)
}

/// A body after a status line and header fields (each with its line end).
pub(crate) fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A page of flows with one flow, and the next page if there is one.
pub(crate) fn page(origin: &str, number: usize, next: Option<&str>) -> Value {
    let own = format!("{origin}/flow/v1/Flows?PageSize=2&Page={number}");
    let first = format!("{origin}/flow/v1/Flows?PageSize=2&Page=0");
    json!({
        "meta": {
            "page": number, "page_size": 2, "first_page_url": first, "previous_page_url": null,
            "url": own, "next_page_url": next, "key": "flows",
        },
        "flows": [flow(origin, number)],
    })
}

/// The only page of a list, for a request with the default size.
pub(crate) fn only_page(origin: &str) -> Value {
    let mut page = page(origin, 0, None);
    page["meta"]["page_size"] = json!(50);
    page
}

/// The response with the only page.
pub(crate) fn flows() -> Vec<u8> {
    ok(only_page("http://127.0.0.1").to_string())
}

/// A different flow for each number.
pub(crate) fn flow(origin: &str, number: usize) -> Value {
    let sid = format!("FW{number:032x}");
    let url = format!("{origin}/flow/v1/Flows/{sid}");
    json!({
        "sid": sid, "account_sid": format!("AC{}", "0".repeat(32)), "friendly_name": "A flow",
        "status": "published", "version": 1, "date_created": "2026-01-02T03:04:05Z",
        "date_updated": null, "url": url,
        "links": { "engagements": format!("{url}/Engagements"), "executions": format!("{url}/Executions") },
    })
}

/// The maximum number of values, each an object.
pub(crate) fn many_objects() -> Value {
    let mut page = page("http://127.0.0.1", 0, None);
    let objects = (0..80_000).map(|n| json!({ format!("{n:0>90}"): 1 }));
    page["flows"][0]["extra"] = objects.collect();
    page
}
