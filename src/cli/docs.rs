//! `docs`: the book, served from the program to this machine alone.
//!
//! Reads no file and answers GET only, on loopback, and only where it is asked for by that name: a page
//! of somebody else's cannot read it through another name.

use super::args::DocsArgs;
use super::signals::Signals;
use super::{Done, Exit, Failure, say};
use crate::clock;
use include_dir::{Dir, include_dir};
use pulldown_cmark::{Options, Parser, html};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

static BOOK: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/docs/src");
/// How often a signal is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A browser that says nothing for so long is left.
const PATIENCE: Duration = Duration::from_secs(2);
/// A longer request is none of a browser's.
const REQUEST_BYTES_MAX: u64 = 16 * 1024;
/// Places that a search shows.
const HITS_MAX: usize = 200;

const STYLE: &str = "\
:root{color-scheme:light dark}body{margin:0 auto;max-width:72rem;padding:1rem 1.5rem 4rem;font:1rem/1.55 system-ui,sans-serif;\
display:grid;grid-template-columns:15rem minmax(0,1fr);gap:0 3rem}nav{font-size:.9rem}nav ol{list-style:none;padding:0}nav li{margin:.3rem 0}\
pre{overflow-x:auto;padding:.7rem;border:1px solid #8886;border-radius:.4rem}code{font-size:.85em;overflow-wrap:anywhere}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.35rem .8rem .35rem 0;border-bottom:1px solid #8886}\
input{font:inherit;width:100%;box-sizing:border-box;padding:.3rem .5rem}@media(max-width:50rem){body{display:block}}";

pub(super) fn docs(args: &DocsArgs) -> Done {
    let trouble =
        |e: std::io::Error| Failure::Trouble(format!("the book could not be served: {e}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(trouble)?;
    listener.set_nonblocking(true).map_err(trouble)?;
    let address = listener.local_addr().map_err(trouble)?;
    let signals = Signals::listen().map_err(trouble)?;
    say(&format!("listening http://{address}\n"));
    let port = address.port();
    while !signals.interrupted.load(Ordering::Relaxed) {
        match listener.accept() {
            // A browser that goes away is no failure of ours.
            Ok((stream, _)) => serve(stream, port).unwrap_or_default(),
            Err(_) => clock::sleep(LOOK_EVERY),
        }
    }
    Ok(Exit::Conformant)
}

fn serve(mut stream: TcpStream, port: u16) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new((&stream).take(REQUEST_BYTES_MAX));
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut host = String::new();
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("host")
        {
            value.trim().clone_into(&mut host);
        }
        line.clear();
    }
    let (status, body) = answer(&first, &host, port);
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Status and page for a request line.
fn answer(first: &str, host: &str, port: u16) -> (&'static str, String) {
    let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    if !own.iter().any(|name| name == host) {
        return (
            "403 Forbidden",
            page(
                "Not here",
                "<p>This book is read on this machine alone.</p>",
            ),
        );
    }
    let mut words = first.split(' ');
    let (Some("GET"), Some(target)) = (words.next(), words.next()) else {
        return (
            "405 Method Not Allowed",
            page("Only reading", "<p>A book is read.</p>"),
        );
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if path == "/search" {
        let asked = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "q");
        let words = asked
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default();
        return ("200 OK", page("Search", &found(&words)));
    }
    let name = match path.trim_start_matches('/') {
        "" => "introduction.md".to_owned(),
        other => format!(
            "{}.md",
            other.trim_end_matches(".md").trim_end_matches(".html")
        ),
    };
    match BOOK.get_file(&name).and_then(|file| file.contents_utf8()) {
        Some(text) => ("200 OK", page(title(text), &rendered(text))),
        None => (
            "404 Not Found",
            page("No such page", "<p>The chapters stand beside.</p>"),
        ),
    }
}

fn title(text: &str) -> &str {
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches('#').trim()
}

fn rendered(markdown: &str) -> String {
    let mut out = String::new();
    html::push_html(&mut out, Parser::new_ext(markdown, Options::ENABLE_TABLES));
    // Chapters name each other by file.
    out.replace(".md\"", "\"").replace(".md#", "#")
}

fn page(title: &str, content: &str) -> String {
    let summary = BOOK
        .get_file("SUMMARY.md")
        .and_then(|file| file.contents_utf8())
        .unwrap_or_default();
    let mut chapters = String::new();
    for line in summary.lines() {
        let Some((name, rest)) = line
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once("]("))
        else {
            continue;
        };
        let file = rest.trim_end_matches(')').trim_end_matches(".md");
        let _ = write!(
            chapters,
            "<li><a href=\"/{file}\">{}</a></li>",
            escaped(name)
        );
    }
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title} · conformant</title><style>{STYLE}</style></head><body><nav aria-label=\"Chapters\">\
         <form action=\"/search\"><input type=\"search\" name=\"q\" aria-label=\"Search the book\" placeholder=\"Search\"></form>\
         <ol>{chapters}</ol></nav><main>{content}</main></body></html>\n",
        title = escaped(title),
    )
}

/// Lines that hold every word, by chapter.
fn found(asked: &str) -> String {
    let words: Vec<String> = asked
        .to_lowercase()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let mut out = format!("<h1>Search: {}</h1>", escaped(asked));
    let mut hits = 0;
    for file in BOOK
        .files()
        .filter(|file| file.path().as_os_str() != "SUMMARY.md")
    {
        let text = file.contents_utf8().unwrap_or_default();
        let fits = |line: &&str| {
            let line = line.to_lowercase();
            !words.is_empty() && words.iter().all(|word| line.contains(word))
        };
        let lines: Vec<&str> = text
            .lines()
            .filter(fits)
            .take(HITS_MAX.saturating_sub(hits))
            .collect();
        if lines.is_empty() {
            continue;
        }
        hits += lines.len();
        let link = file.path().with_extension("");
        let _ = write!(
            out,
            "<h2><a href=\"/{}\">{}</a></h2><ul>",
            link.display(),
            escaped(title(text))
        );
        for line in lines {
            let line = line
                .trim_matches(|c: char| c == '|' || c.is_whitespace())
                .replace("<br>", " ");
            let _ = write!(out, "<li>{}</li>", escaped(&line));
        }
        out.push_str("</ul>");
    }
    if hits == 0 {
        out.push_str("<p>Nothing in the book has all of these words.</p>");
    }
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(target: &str) -> (&'static str, String) {
        answer(&format!("GET {target} HTTP/1.1\r\n"), "127.0.0.1:4", 4)
    }

    #[test]
    fn every_chapter_is_served_and_can_be_searched() {
        for file in BOOK
            .files()
            .filter(|file| file.path().as_os_str() != "SUMMARY.md")
        {
            let (status, page) = get(&format!("/{}", file.path().display()));
            assert_eq!(status, "200 OK", "{}", file.path().display());
            assert!(page.contains("<h1>"), "{page}");
        }
        assert!(get("/search?q=exit+code").1.contains("<li>"));
        assert!(
            get("/search?q=flow%2Fread-flows%2Fpage-size")
                .1
                .contains("flow/read-flows/page-size")
        );
        assert_eq!(get("/no-such").0, "404 Not Found");
    }

    #[test]
    fn nobody_else_is_answered_and_nothing_else_is_done() {
        assert_eq!(
            answer("GET / HTTP/1.1", "evil.example", 4).0,
            "403 Forbidden"
        );
        assert_eq!(
            answer("POST / HTTP/1.1", "localhost:4", 4).0,
            "405 Method Not Allowed"
        );
        for target in ["/../Cargo.toml", "/%2e%2e/Cargo", "//etc/passwd"] {
            assert_eq!(get(target).0, "404 Not Found", "{target}");
        }
        let (_, page) = get("/search?q=%3Cscript%3E");
        assert!(page.contains("Search: &lt;script&gt;") && !page.contains("<script"));
    }
}
