//! Write, edit, move, delete: the changing half of a workspace, with a grant of its own.

mod delete;
mod edit;

wit_bindgen::generate!({ world: "workspace-write", path: "wit" });

use exports::ambit::workspace::writing::{DeleteArgs, Deleted, EditArgs, Edited, Guest, MoveArgs, WriteArgs, Written};
use wasip2::filesystem::types::DescriptorType;
use workspace_files::{Path, Workspace};

struct WorkspaceWrite;

impl Guest for WorkspaceWrite {
    fn write(args: WriteArgs) -> Result<Written, String> {
        let workspace = Workspace::open()?;
        let path = Path::parse(&args.path)?;
        let created = free_for_a_file(&workspace, &path, args.overwrite.unwrap_or(false))?;
        workspace.make_parents(&path)?;
        workspace.replace(&path, &args.text)?;
        Ok(Written {
            bytes: args.text.len() as u64,
            created,
        })
    }

    fn edit(args: EditArgs) -> Result<Edited, String> {
        edit::edit(&Workspace::open()?, &args)
    }

    fn move_(args: MoveArgs) -> Result<(), String> {
        let workspace = Workspace::open()?;
        let (source, destination) = (Path::parse(&args.source)?, Path::parse(&args.destination)?);
        if source.is_root() {
            return Err("The workspace itself can't be moved.".into());
        }
        if destination != source && destination.is_within(&source) {
            return Err(format!("{source} can't be moved into itself."));
        }
        if workspace.kind(&source)?.is_none() {
            return Err(format!("There is no {source}."));
        }
        free_for_a_file(&workspace, &destination, args.overwrite.unwrap_or(false))?;
        workspace.make_parents(&destination)?;
        workspace.rename(&source, &destination)
    }

    fn delete(args: DeleteArgs) -> Result<Deleted, String> {
        delete::delete(&Workspace::open()?, &args)
    }
}

/// Whether nothing is there yet. Anything but a regular file that may be overwritten is an error: a symlink would be replaced, not followed.
fn free_for_a_file(workspace: &Workspace, path: &Path, overwrite: bool) -> Result<bool, String> {
    match workspace.kind(path)? {
        None => Ok(true),
        Some(DescriptorType::RegularFile) if overwrite => Ok(false),
        Some(DescriptorType::RegularFile) => Err(format!(
            "{path} exists already. Set overwrite to true to replace it, or use edit to change a part."
        )),
        Some(DescriptorType::Directory) => Err(format!("{path} is a folder.")),
        Some(_) => Err(format!("{path} is a symlink or a device, which is not replaced.")),
    }
}

export!(WorkspaceWrite);
