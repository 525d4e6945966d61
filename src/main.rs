//! The `conformant` command.

fn main() -> std::process::ExitCode {
    conformant::cli::main()
}
