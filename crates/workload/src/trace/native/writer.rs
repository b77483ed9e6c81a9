//! Writes a program as a native trace.

use super::checksum::checksum;
use super::header::Header;
use super::index::{self, BlockEntry, KernelIndex};
use super::{LARGEST_BLOCK, MAGIC, VERSION};
use crate::encode::encode;
use crate::trace::error::TraceError;
use crate::trace::info::Origin;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use tombolo_types::stream::{CtaStream, Program, StreamError};

/// Encoded bytes per block: enough to compress well, few enough to unpack for a single CTA.
const BLOCK: usize = 32 << 10;
/// Compression level for zstd: its default; higher levels gain little for traces.
const LEVEL: i32 = 3;

/// Writes `program` to `out`: first into a temporary file in the same folder, renamed once it is complete and on disk.
pub(in crate::trace) fn write(program: &dyn Program, origin: Option<&Origin>, out: &Path) -> Result<(), TraceError> {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".").suffix(".tombolo-part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Default permissions for new files; the process's umask removes its share.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    // Dropping the temporary file on any error removes it from disk.
    let part = builder.tempfile_in(folder).map_err(TraceError::io(out, "create"))?;
    let sink = TraceWriter { file: BufWriter::with_capacity(1 << 20, part.as_file()), path: out, offset: 0 };
    sink.whole(program, origin)?;
    part.persist(out).map_err(|error| TraceError::io(out, "put in place")(error.error))?;
    // The new name reaches the disk with its folder. Some file systems do not support syncing a folder and write the
    // name later: the file is complete either way.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// The file being written.
struct TraceWriter<'a> {
    file: BufWriter<&'a File>,
    path: &'a Path,
    offset: u64,
}

impl TraceWriter<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        self.file.write_all(bytes).map_err(TraceError::io(self.path, "write"))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Writes the whole file and waits for the disk.
    fn whole(mut self, program: &dyn Program, origin: Option<&Origin>) -> Result<(), TraceError> {
        self.program(program, origin)?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error);
        file.and_then(File::sync_all).map_err(TraceError::io(self.path, "write"))
    }

    fn program(&mut self, program: &dyn Program, origin: Option<&Origin>) -> Result<(), TraceError> {
        let header = serde_json::to_vec(&Header::of(program, origin));
        let header = header.map_err(|error| TraceError::io(self.path, "describe the program in")(error.into()))?;
        let too_long = || io::Error::other("the names and commands of the program exceed 4 GiB");
        let length = u32::try_from(header.len()).map_err(|_| TraceError::io(self.path, "write")(too_long()))?;
        self.put(MAGIC)?;
        self.put(&VERSION.to_le_bytes())?;
        self.put(&length.to_le_bytes())?;
        self.put(&checksum(&header).to_le_bytes())?;
        self.put(&header)?;
        let mut kernels = Vec::with_capacity(program.kernels().len());
        for kernel in 0..program.kernels().len() as u32 {
            kernels.push(self.kernel(program, kernel)?);
        }
        let mut index = Vec::new();
        index::write(&kernels, &mut index);
        let mut footer = Vec::new();
        footer.extend(self.offset.to_le_bytes());
        footer.extend((index.len() as u64).to_le_bytes());
        footer.extend(checksum(&index).to_le_bytes());
        footer.extend(checksum(&footer).to_le_bytes());
        footer.extend(MAGIC);
        self.put(&index)?;
        self.put(&footer)
    }

    fn kernel(&mut self, program: &dyn Program, kernel: u32) -> Result<KernelIndex, TraceError> {
        let mut blocks = KernelIndex::default();
        let mut packer = zstd::bulk::Compressor::new(LEVEL).map_err(TraceError::io(self.path, "compress for"))?;
        let mut stream = CtaStream::default();
        let (mut ends, mut encoded) = (Vec::new(), Vec::new());
        for cta in 0..program.kernels()[kernel as usize].ctas {
            let failed = |source| TraceError::Stream { kernel, cta, source };
            program.cta(kernel, cta, &mut stream).map_err(failed)?;
            let before = encoded.len();
            encode(&stream, &mut encoded);
            let length = encoded.len() - before;
            if length > LARGEST_BLOCK / 2 {
                let message =
                    format!("takes {length} bytes encoded; a native trace holds CTAs up to {}", LARGEST_BLOCK / 2);
                return Err(failed(StreamError { message }));
            }
            ends.push(encoded.len() as u32);
            if encoded.len() >= BLOCK {
                blocks.push(self.block(&mut packer, &mut ends, &mut encoded)?);
            }
        }
        if !ends.is_empty() {
            blocks.push(self.block(&mut packer, &mut ends, &mut encoded)?);
        }
        Ok(blocks)
    }

    /// Writes the CTAs collected in `encoded` as a block, and empties both collections.
    fn block(
        &mut self,
        packer: &mut zstd::bulk::Compressor<'_>,
        ends: &mut Vec<u32>,
        encoded: &mut Vec<u8>,
    ) -> Result<BlockEntry, TraceError> {
        let mut unpacked: Vec<u8> = ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        unpacked.append(encoded);
        let packed = packer.compress(&unpacked).map_err(TraceError::io(self.path, "compress for"))?;
        let block = BlockEntry {
            offset: self.offset,
            length: packed.len() as u32,
            unpacked: unpacked.len() as u32,
            ctas: ends.len() as u32,
            checksum: checksum(&packed),
        };
        ends.clear();
        self.put(&packed)?;
        Ok(block)
    }
}
