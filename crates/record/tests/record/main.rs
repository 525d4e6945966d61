//! Findings, verdicts and the run record, through their public interface.

mod archive;
mod claims;
mod defects;
mod detection;
mod junit;
mod proof;
mod sample;
mod title;
mod waivers;
