package dev.parley.dist;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;

/** A folder as a tar.gz that depends on nothing but names, contents and what may be executed. */
final class Archive {
    private static final int BUFFER_BYTES = 1 << 16;

    private Archive() {}

    /**
     * Writes one. Links are packed as what they lead to.
     *
     * @param folder whose own name stands before all names
     * @param time of all files, in whole seconds
     */
    static void write(Path folder, Instant time, Path archive) throws IOException {
        try (OutputStream file = Files.newOutputStream(archive);
                OutputStream packed = new GZIPOutputStream(file, BUFFER_BYTES);
                TarArchiveOutputStream tar = new TarArchiveOutputStream(packed, StandardCharsets.UTF_8.name())) {
            for (Map.Entry<String, Path> each : files(folder).entrySet()) {
                add(tar, folder.getFileName() + "/" + each.getKey(), each.getValue(), time);
            }
        }
    }

    /** Lists all files and folders below one by their names in it, in the order of these names. */
    static Map<String, Path> files(Path folder) throws IOException {
        Map<String, Path> files = new TreeMap<>();
        try (Stream<Path> all = Files.walk(folder)) {
            all.filter(file -> !file.equals(folder))
                    .forEach(file -> files.put(folder.relativize(file).toString(), file));
        }
        return files;
    }

    private static void add(TarArchiveOutputStream tar, String name, Path file, Instant time) throws IOException {
        boolean isFolder = Files.isDirectory(file);
        TarArchiveEntry entry = new TarArchiveEntry(isFolder ? name + "/" : name);
        entry.setModTime(FileTime.from(time));
        entry.setIds(0, 0);
        entry.setNames("", "");
        entry.setMode(isRunOrEntered(file) ? 0755 : 0644);
        if (!isFolder) {
            entry.setSize(Files.size(file));
        }
        tar.putArchiveEntry(entry);
        if (!isFolder) {
            Files.copy(file, tar);
        }
        tar.closeArchiveEntry();
    }

    /** Says whether everybody may execute this file or enter this folder. */
    static boolean isRunOrEntered(Path file) {
        return Files.isDirectory(file) || Files.isExecutable(file);
    }
}
