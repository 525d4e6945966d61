//! Pictures as PNG files (ISO/IEC 15948): eight bits per channel, unfiltered rows.

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use std::io::Write as _;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// What a pixel consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pixel {
    /// One byte of brightness.
    Gray,
    /// Three bytes: red, green and blue.
    Rgb,
}

impl Pixel {
    fn bytes(self) -> usize {
        match self {
            Self::Gray => 1,
            Self::Rgb => 3,
        }
    }

    /// The color type of the format.
    fn code(self) -> u8 {
        match self {
            Self::Gray => 0,
            Self::Rgb => 2,
        }
    }
}

/// A PNG file of pixels in rows of this width; an incomplete last row is left out.
///
/// # Panics
/// Never: memory can be written.
pub fn png(width: u32, pixel: Pixel, pixels: &[u8]) -> Vec<u8> {
    let rows = pixels.chunks_exact((width as usize * pixel.bytes()).max(1));
    let height = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    for row in rows {
        let written = packed.write_all(&[0]).and_then(|()| packed.write_all(row));
        written.expect("memory can be written");
    }
    let packed = packed.finish().expect("memory can be written");
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    // Bits per channel and color type; the only compression and filter method; not interlaced.
    header.extend([8, pixel.code(), 0, 0, 0]);
    let mut file = SIGNATURE.to_vec();
    for (name, content) in [(b"IHDR", &header[..]), (b"IDAT", &packed), (b"IEND", &[])] {
        let mut crc = Crc::new();
        crc.update(name);
        crc.update(content);
        file.extend(
            u32::try_from(content.len())
                .unwrap_or(u32::MAX)
                .to_be_bytes(),
        );
        file.extend(name);
        file.extend(content);
        file.extend(crc.sum().to_be_bytes());
    }
    file
}
