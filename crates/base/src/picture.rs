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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn the_smallest_picture_is_known_by_its_bytes() {
        let file = png(1, Pixel::Gray, &[0]);
        let (head, rest) = file.split_at(33);
        // Of the file that other programs write for one black pixel.
        let known = "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55";
        assert_eq!(crate::text::hex(head.to_vec()), known);
        assert!(rest.ends_with(b"\0\0\0\0IEND\xaeB`\x82"), "{rest:?}");
    }

    #[test]
    fn rows_are_packed_behind_their_filter_and_incomplete_ones_left_out() {
        let file = png(2, Pixel::Rgb, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
        assert_eq!(file[16..24], [0, 0, 0, 2, 0, 0, 0, 2]);
        let mut rows = Vec::new();
        let mut packed = flate2::read::ZlibDecoder::new(&file[41..]);
        packed.read_to_end(&mut rows).unwrap();
        assert_eq!(rows, [0, 1, 2, 3, 4, 5, 6, 0, 7, 8, 9, 10, 11, 12]);
    }
}
