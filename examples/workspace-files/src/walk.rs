use wasip2::filesystem::types::DescriptorType;

use crate::{Path, Workspace};

/// Folders that hold what was not written here. They are left out unless a walk starts inside one.
const SKIPPED: [&str; 3] = [".git", "node_modules", "target"];

/// Bounds of one walk: past them it ends and says so.
const MAX_VISITED: usize = 100_000;
const MAX_DEPTH: usize = 64;

/// Files and folders below a path, depth first, each folder's entries by name. Symlinks are named but not followed.
pub struct Walk<'a> {
    workspace: &'a Workspace,
    pending: Vec<(Found, usize)>,
    visited: usize,
    /// Whether a bound was met, so that something may be missing.
    pub cut_short: bool,
}

pub struct Found {
    pub path: Path,
    pub kind: DescriptorType,
}

impl<'a> Walk<'a> {
    pub fn new(workspace: &'a Workspace, start: &Path) -> Result<Self, String> {
        let kind = workspace.stat(start)?.type_;
        let pending = vec![(Found { path: start.clone(), kind }, 0)];
        Ok(Walk {
            workspace,
            pending,
            visited: 0,
            cut_short: false,
        })
    }

    /// The next one, the start included. A folder that can't be read is passed over: others are of use without it.
    pub fn step(&mut self) -> Option<Found> {
        let (found, depth) = self.pending.pop()?;
        self.visited += 1;
        if self.visited > MAX_VISITED {
            self.cut_short = true;
            return None;
        }
        if found.kind == DescriptorType::Directory {
            if depth < MAX_DEPTH {
                self.descend(&found.path, depth + 1);
            } else {
                self.cut_short = true;
            }
        }
        Some(found)
    }

    fn descend(&mut self, folder: &Path, depth: usize) {
        let Ok(entries) = self.workspace.entries(folder) else { return };
        for entry in entries.into_iter().rev() {
            if entry.kind == DescriptorType::Directory && SKIPPED.contains(&entry.name.as_str()) {
                continue;
            }
            self.pending.push((
                Found {
                    path: folder.join(&entry.name),
                    kind: entry.kind,
                },
                depth,
            ));
        }
    }
}
