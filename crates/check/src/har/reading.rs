//! Reads the list of entries of a file one by one, without holding the file.

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::cell::Cell;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

/// Maximum size of a file, which is streamed.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Maximum size of an entry with its bodies.
const ENTRY_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Some programs begin a file with it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a file and passes each entry on.
pub(super) fn read_entries(
    source: &mut dyn Read,
    take: &mut dyn FnMut(&RawValue),
) -> Result<(), serde_json::Error> {
    let read = Rc::new(Cell::new(Allowance {
        file: FILE_BYTES_MAX,
        entry: ENTRY_BYTES_MAX,
    }));
    let mut start = Vec::new();
    let mark = BYTE_ORDER_MARK.len() as u64;
    let mut source = source;
    let filled = (&mut source).take(mark).read_to_end(&mut start);
    filled.map_err(serde_json::Error::io)?;
    let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&start);
    let limited = Limited {
        source: &mut start.chain(source),
        allowance: Rc::clone(&read),
    };
    let mut deserializer =
        serde_json::Deserializer::from_reader(BufReader::with_capacity(64 * 1024, limited));
    let mut take = |entry: &RawValue| {
        take(entry);
        read.set(Allowance {
            entry: ENTRY_BYTES_MAX,
            ..read.get()
        });
    };
    let mut steps = Steps {
        path: &["log", "entries"],
        take: &mut take,
    };
    Below(&mut steps)
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end())
}

/// Remaining number of bytes.
#[derive(Clone, Copy)]
struct Allowance {
    file: u64,
    entry: u64,
}

/// A reader that fails if a file or an entry is too large.
struct Limited<'a> {
    source: &'a mut dyn Read,
    allowance: Rc<Cell<Allowance>>,
}

impl Read for Limited<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Allowance { file, entry } = self.allowance.get();
        let read = self.source.read(buffer)?;
        let size = read as u64;
        if size > entry {
            let why = format!("larger than {ENTRY_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        if size > file {
            let why = format!("the file is larger than {FILE_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        self.allowance.set(Allowance {
            file: file - size,
            entry: entry - size,
        });
        Ok(read)
    }
}

/// The path to the list of entries, and their consumer.
struct Steps<'a> {
    path: &'static [&'static str],
    take: &'a mut dyn FnMut(&RawValue),
}

/// Visitor of the next step of the path.
struct Below<'a, 'b>(&'a mut Steps<'b>);

impl<'de> DeserializeSeed<'de> for Below<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.0.path.is_empty() {
            deserializer.deserialize_seq(self)
        } else {
            deserializer.deserialize_map(self)
        }
    }
}

impl<'de> Visitor<'de> for Below<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.path {
            [] => f.write_str("a list of entries"),
            [name, ..] => write!(f, "an object with `{name}`"),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (name, rest) = self
            .0
            .path
            .split_first()
            .ok_or_else(|| A::Error::custom("found an object, expected a list"))?;
        let mut is_found = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == *name && !is_found {
                is_found = true;
                let mut steps = Steps {
                    path: rest,
                    take: &mut *self.0.take,
                };
                map.next_value_seed(Below(&mut steps))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if is_found {
            Ok(())
        } else {
            Err(A::Error::custom(format!(
                "not a HAR file: `{name}` is missing"
            )))
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some(entry) = entries.next_element::<Box<RawValue>>()? {
            (self.0.take)(&entry);
        }
        Ok(())
    }
}
