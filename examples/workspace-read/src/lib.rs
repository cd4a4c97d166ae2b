//! Search, find, read, list, compare: the reading half of a workspace, granted a folder read-only.

mod compare;
mod find;
mod read;
mod search;

wit_bindgen::generate!({ world: "workspace-read", path: "wit" });

use exports::ambit::workspace::reading::{
    CompareArgs, Comparison, Entry, EntryKind, FileText, FindArgs, FindResult, Guest, ListArgs, ReadArgs, SearchArgs, SearchResult,
};
use wasip2::filesystem::types::DescriptorType;
use workspace_files::{Path, Workspace};

/// Bytes of text that one answer carries at most: far below a host's cap on results, and as much as a model can use.
pub const MAX_ANSWER: usize = 128 * 1024;

struct WorkspaceRead;

impl Guest for WorkspaceRead {
    fn search(args: SearchArgs) -> Result<SearchResult, String> {
        search::search(&Workspace::open()?, &args)
    }

    fn find(args: FindArgs) -> Result<FindResult, String> {
        find::find(&Workspace::open()?, &args)
    }

    fn read(args: ReadArgs) -> Result<FileText, String> {
        read::read(&Workspace::open()?, &args)
    }

    fn list(args: ListArgs) -> Result<Vec<Entry>, String> {
        let workspace = Workspace::open()?;
        let folder = Path::parse_or_root(args.path.as_deref())?;
        let entries = workspace.entries(&folder)?;
        Ok(entries.into_iter().map(|entry| described(&workspace, &folder, entry)).collect())
    }

    fn compare(args: CompareArgs) -> Result<Comparison, String> {
        compare::compare(&Workspace::open()?, &args)
    }
}

fn described(workspace: &Workspace, folder: &Path, entry: workspace_files::Entry) -> Entry {
    let kind = match entry.kind {
        DescriptorType::RegularFile => EntryKind::File,
        DescriptorType::Directory => EntryKind::Folder,
        DescriptorType::SymbolicLink => EntryKind::Symlink,
        _ => EntryKind::Other,
    };
    // A file that went away meanwhile is listed without a size.
    let size = if kind == EntryKind::File {
        workspace.stat(&folder.join(&entry.name)).ok().map(|stat| stat.size)
    } else {
        None
    };
    Entry {
        name: entry.name,
        kind,
        size,
    }
}

export!(WorkspaceRead);
