//! The one folder that a workspace tool is granted, over `wasi:filesystem`: paths relative to it, text files within a size, errors in words.
//!
//! What a path may reach is decided by the host, not here: this crate only says early and readably what the host would refuse.

mod path;
mod text;
mod walk;

pub use path::Path;
pub use text::{MAX_FILE, is_binary};
pub use walk::{Found, Walk};

use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, OpenFlags, PathFlags};

/// The granted folder.
pub struct Workspace {
    root: Descriptor,
}

/// A name in a folder and what it is.
pub struct Entry {
    pub name: String,
    pub kind: DescriptorType,
}

impl Workspace {
    /// The first mounted volume.
    pub fn open() -> Result<Self, String> {
        match get_directories().into_iter().next() {
            Some((root, _)) => Ok(Workspace { root }),
            None => Err("No folder is mounted. Ask the operator to mount a volume for this tool.".into()),
        }
    }

    /// Symlinks are followed as far as they stay in the folder.
    pub fn stat(&self, path: &Path) -> Result<DescriptorStat, String> {
        self.root
            .stat_at(PathFlags::SYMLINK_FOLLOW, path.as_str())
            .map_err(|code| explain(code, path))
    }

    /// Null where nothing has that name; a symlink is not followed.
    pub fn kind(&self, path: &Path) -> Result<Option<DescriptorType>, String> {
        match self.root.stat_at(PathFlags::empty(), path.as_str()) {
            Ok(stat) => Ok(Some(stat.type_)),
            Err(ErrorCode::NoEntry) => Ok(None),
            Err(code) => Err(explain(code, path)),
        }
    }

    /// A folder's entries, sorted by name.
    pub fn entries(&self, path: &Path) -> Result<Vec<Entry>, String> {
        let folder = self
            .root
            .open_at(
                PathFlags::SYMLINK_FOLLOW,
                path.as_str(),
                OpenFlags::DIRECTORY,
                DescriptorFlags::READ,
            )
            .map_err(|code| explain(code, path))?;
        let stream = folder.read_directory().map_err(|code| explain(code, path))?;
        let mut entries = Vec::new();
        while let Some(entry) = stream.read_directory_entry().map_err(|code| explain(code, path))? {
            entries.push(Entry {
                name: entry.name,
                kind: entry.type_,
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// The bytes of a regular file, up to `MAX_FILE`.
    pub fn bytes(&self, path: &Path) -> Result<Vec<u8>, String> {
        let stat = self.stat(path)?;
        match stat.type_ {
            DescriptorType::RegularFile => {}
            DescriptorType::Directory => return Err(format!("{path} is a folder, not a file.")),
            _ => return Err(format!("{path} is not a regular file.")),
        }
        if stat.size > MAX_FILE {
            return Err(format!(
                "{path} has {} bytes, more than the {MAX_FILE} that this tool reads.",
                stat.size
            ));
        }
        let file = self
            .root
            .open_at(PathFlags::SYMLINK_FOLLOW, path.as_str(), OpenFlags::empty(), DescriptorFlags::READ)
            .map_err(|code| explain(code, path))?;
        let mut bytes = Vec::with_capacity(stat.size as usize);
        while (bytes.len() as u64) <= MAX_FILE {
            let (chunk, end) = file.read(1 << 20, bytes.len() as u64).map_err(|code| explain(code, path))?;
            bytes.extend_from_slice(&chunk);
            if end || chunk.is_empty() {
                return Ok(bytes);
            }
        }
        Err(format!("{path} grew while it was read."))
    }

    /// The text of a file; binary files and other encodings are refused.
    pub fn text(&self, path: &Path) -> Result<String, String> {
        let bytes = self.bytes(path)?;
        if is_binary(&bytes) {
            return Err(format!("{path} is a binary file of {} bytes.", bytes.len()));
        }
        String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8 text."))
    }

    /// Creates the folders that lead to the path, where they are missing.
    pub fn make_parents(&self, path: &Path) -> Result<(), String> {
        for parent in path.parents() {
            match self.root.create_directory_at(parent.as_str()) {
                Ok(()) | Err(ErrorCode::Exist) => {}
                Err(code) => return Err(explain(code, &parent)),
            }
        }
        Ok(())
    }

    /// Puts the text in place at once: whoever reads the file sees the old text or the new one, never a part.
    pub fn replace(&self, path: &Path, text: &str) -> Result<(), String> {
        let draft = path.sibling(&format!(".{}.draft", path.name()));
        let written = self.write_new(&draft, text.as_bytes()).and_then(|()| self.rename(&draft, path));
        if written.is_err() {
            // The first error is the one that tells; a draft that can't be removed either is only litter.
            let _ = self.root.unlink_file_at(draft.as_str());
        }
        written
    }

    pub fn rename(&self, source: &Path, destination: &Path) -> Result<(), String> {
        self.root
            .rename_at(source.as_str(), &self.root, destination.as_str())
            .map_err(|code| explain(code, source))
    }

    pub fn remove_file(&self, path: &Path) -> Result<(), String> {
        self.root.unlink_file_at(path.as_str()).map_err(|code| explain(code, path))
    }

    pub fn remove_folder(&self, path: &Path) -> Result<(), String> {
        self.root.remove_directory_at(path.as_str()).map_err(|code| explain(code, path))
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> Result<(), String> {
        let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE;
        let file = self
            .root
            .open_at(PathFlags::empty(), path.as_str(), flags, DescriptorFlags::WRITE)
            .map_err(|code| explain(code, path))?;
        let mut offset = 0;
        while offset < bytes.len() {
            let end = bytes.len().min(offset + (1 << 20));
            let count = file.write(&bytes[offset..end], offset as u64).map_err(|code| explain(code, path))?;
            offset += count as usize;
        }
        Ok(())
    }
}

fn explain(code: ErrorCode, path: &Path) -> String {
    match code {
        ErrorCode::NoEntry => format!("There is no {path}."),
        ErrorCode::NotDirectory => format!("{path} is not a folder, or a part of it is none."),
        ErrorCode::IsDirectory => format!("{path} is a folder."),
        ErrorCode::NotEmpty => format!("{path} is a folder that is not empty."),
        ErrorCode::Exist => format!("{path} exists already."),
        ErrorCode::NotPermitted | ErrorCode::Access => {
            format!("{path} is out of reach: it leads out of the workspace, or may not be touched.")
        }
        ErrorCode::ReadOnly => format!("{path} can't be changed: the workspace is mounted read-only."),
        ErrorCode::InsufficientSpace | ErrorCode::Quota => format!("{path} can't be written: the disk is full."),
        ErrorCode::Loop => format!("{path} is a symlink that leads in a circle."),
        other => format!("{path}: {}.", other.message()),
    }
}
