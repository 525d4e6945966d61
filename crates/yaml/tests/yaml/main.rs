//! YAML through the public interface of the reader.

mod read;
