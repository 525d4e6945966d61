//! Responses of the authentication service in the format named by the path.
//!
//! Knows formats and failures, but no users or requests.

use super::xml;
use crate::{Core, Fault, Variant};
use conformant_base::http::Response;
use serde_json::{Value, json};

/// An error response. Status codes are not shown (D1, Errors).
#[derive(Debug)]
pub(super) struct Failure {
    status: u16,
    body: Value,
    /// An undocumented body: it may be anything.
    is_free: bool,
}

impl Failure {
    pub(super) fn new(status: u16, message: &str) -> Self {
        Self {
            status,
            body: json!({"message": message, "success": false}),
            is_free: true,
        }
    }

    pub(super) fn not_found() -> Self {
        Self::new(404, "Not found")
    }

    /// The response to create-user with an invalid user (D1, Errors).
    pub(super) fn invalid_user(field: &str, error_code: &str) -> Self {
        const MESSAGE: &str = "User was not valid";
        let mut body = json!({
            "message": MESSAGE,
            "success": false,
            "errors": {field: "is invalid", "message": MESSAGE},
        });
        body[field] = json!("is invalid");
        body["error_code"] = json!(error_code);
        Self {
            status: 400,
            body,
            is_free: false,
        }
    }
}

/// Writes a response in the format of the operation.
pub(super) fn render(core: &Core, is_new: bool, answer: Result<Value, Failure>) -> Response {
    let is_xml = core.operation.is_xml;
    match answer {
        Ok(body) => {
            // Clients of this service accept only 200, although no document says so.
            let status = if is_new && core.varies(Variant::AuthCreatedIs201) {
                201
            } else {
                200
            };
            write(core, is_xml, status, &body)
        }
        Err(failure) => {
            let status = if core.varies(Variant::AuthFailureIs200) {
                200
            } else {
                failure.status
            };
            if failure.is_free && status != 200 && core.varies(Variant::OtherErrorBody) {
                return Response::new(status, "text/plain", "refused");
            }
            let is_xml = is_xml && !core.fails(Fault::AuthXmlErrorsAreJson);
            write(core, is_xml, status, &failure.body)
        }
    }
}

fn write(core: &Core, asked_xml: bool, status: u16, body: &Value) -> Response {
    let body = core.with_effects(&core.operation, body);
    let is_xml = if asked_xml {
        !core.fails(Fault::AuthXmlIsJson)
    } else {
        core.fails(Fault::AuthJsonIsXml)
    };
    if !is_xml {
        return Response::json(status, &body);
    }
    let style = if core.fails(Fault::AuthXmlUnescaped) {
        xml::Style::Raw
    } else if core.varies(Variant::AuthXmlPlain) {
        xml::Style::Plain
    } else {
        xml::Style::Typed
    };
    let mut text = xml::document(style, &body);
    if core.fails(Fault::AuthXmlMalformed) {
        text.truncate(text.rfind("</").unwrap_or_default());
    }
    Response::new(status, "application/xml", text)
}
