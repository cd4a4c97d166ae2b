/// Largest file that is read, in bytes.
pub const MAX_FILE: u64 = 8 << 20;

/// How far a file is looked at to tell text from the rest, as git does it.
const LOOKED_AT: usize = 8000;

pub fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(LOOKED_AT)].contains(&0)
}
