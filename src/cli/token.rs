//! `token`: builds a registration token or QR code of the configured application.
//!
//! Rules that it breaks are notes: a token for a test of refusals breaks some.

use super::args::{Specs, TokenArgs};
use super::{Done, Exit, Failure, config, load, note, print, write_file};
use conformant_base::picture::{self, Pixel};
use conformant_check::{Surroundings, judge_qr};
use conformant_engine::token::{Application, Offer};
use conformant_record::Finding;
use conformant_rulebook::service::ServiceIndex;
use conformant_schema::Schemas;
use qrcode::render::{svg, unicode};
use qrcode::{Color, EcLevel, QrCode};
use serde_json::Value;
use std::io::IsTerminal;

/// Width of the quiet zone, from the QR standard.
const QUIET_MODULES: usize = 4;
/// Pixels of one module.
const MODULE_PIXELS: usize = 8;

pub(super) fn token(args: &TokenArgs) -> Done {
    let known = config::known(args.config.as_deref(), None)?;
    if known.is_reference {
        note("no application is configured: the reference's application is used");
    }
    let value = |key: &str| {
        let missing = || {
            let (at, variable) = known.place_of(ServiceIndex::embedded(), key);
            Failure::Usage(format!("{at} is not configured; set {variable}"))
        };
        known.of_application(key).ok_or_else(missing)
    };
    let application = Application {
        name: value("name")?,
        id: value("id")?,
        scheme: value("scheme")?,
        api_key: value("api_key")?,
    };
    let lifetime = conformant_rulebook::duration(&args.expires)
        .and_then(|lifetime| jiff::SignedDuration::try_from(lifetime).ok())
        .ok_or_else(|| {
            Failure::Usage(format!("invalid --expires `{}`: expected a number and a unit, such as `90s`, `10m` or `1h`", args.expires))
        })?;
    let user = args
        .custom_user_id
        .clone()
        .unwrap_or_else(|| conformant_base::ids::uuid(rand::random()));
    let offer = application
        .offer(&user, lifetime, conformant_base::clock::now())
        .map_err(|e| Failure::Usage(e.to_string()))?;
    draw(args, &offer)?;
    for finding in broken(&offer.qr, known.of_traffic(), &application.api_key)? {
        note(&format!(
            "a service may refuse this token: {} ({})",
            conformant_record::title(&finding),
            finding.rule
        ));
    }
    Ok(Exit::Conformant)
}

/// What the rules say against the text of a QR code.
fn broken(qr: &str, configured: Value, api_key: &str) -> Result<Vec<Finding>, Failure> {
    let rulebook = load(&Specs::default())?;
    let surroundings = Surroundings {
        configured,
        api_key: Some(api_key.to_owned()),
        now: Some(conformant_base::clock::now()),
        ..Surroundings::default()
    };
    let judged = judge_qr(&rulebook, &Schemas::default(), &surroundings, qr);
    Ok(judged.findings)
}

fn draw(args: &TokenArgs, offer: &Offer) -> Result<(), Failure> {
    let code = QrCode::with_error_correction_level(&offer.qr, EcLevel::L)
        .map_err(|e| Failure::Usage(format!("the text is too long for a QR code: {e}")))?;
    if let Some(path) = &args.svg {
        let picture = code
            .render::<svg::Color<'_>>()
            .min_dimensions(300, 300)
            .build();
        write_file(path, picture)?;
    }
    if let Some(path) = &args.png {
        write_file(path, png(&code)?)?;
    }
    if args.qr && std::io::stdout().is_terminal() {
        let picture = code.render::<unicode::Dense1x2>().build();
        print(&format!("{picture}\n"));
    }
    print(&format!(
        "{}\n",
        if args.qr { &offer.qr } else { &offer.token }
    ));
    Ok(())
}

/// The code as a black and white PNG.
fn png(code: &QrCode) -> Result<Vec<u8>, Failure> {
    let width = (code.width() + 2 * QUIET_MODULES) * MODULE_PIXELS;
    let is_dark = |x: usize, y: usize| {
        let module = |pixel: usize| {
            (pixel / MODULE_PIXELS)
                .checked_sub(QUIET_MODULES)
                .filter(|m| *m < code.width())
        };
        module(x)
            .zip(module(y))
            .is_some_and(|at| code[at] == Color::Dark)
    };
    let pixels: Vec<u8> = (0..width)
        .flat_map(|y| (0..width).map(move |x| (x, y)))
        .map(|(x, y)| if is_dark(x, y) { 0 } else { u8::MAX })
        .collect();
    let size = u32::try_from(width)
        .map_err(|_| Failure::Trouble("the picture is too large".to_owned()))?;
    Ok(picture::png(size, Pixel::Gray, &pixels))
}
