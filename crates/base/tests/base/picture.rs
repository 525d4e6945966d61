//! Tests of `picture`.

use conformant_base::picture::{Pixel, png};
use conformant_base::text::hex;
use std::io::Read as _;

#[test]
fn the_smallest_picture_is_known_by_its_bytes() {
    let file = png(1, Pixel::Gray, &[0]);
    let (head, rest) = file.split_at(33);
    // Of the file that other programs write for one black pixel.
    let known = "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55";
    assert_eq!(hex(head.to_vec()), known);
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
