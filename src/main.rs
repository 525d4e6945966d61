//! The `conformant` command: parses, calls, exits.

fn main() -> std::process::ExitCode {
    conformant::cli::main()
}
