//! The style sheet that the report page and the page of `serve` share.

/// The style sheet.
pub const STYLE: &str = include_str!("page.css");
