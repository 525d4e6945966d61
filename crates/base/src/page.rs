//! The style sheet shared by the report page and the page of `serve`.

pub const STYLE: &str = include_str!("page.css");
