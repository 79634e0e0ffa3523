package dev.parley.dist;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.zip.GZIPInputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ArchiveTest {
    @TempDir
    Path folder;

    private Path staged(String name) throws IOException {
        return MadeUp.staged(
                MadeUp.checkout(folder.resolve(name + "-checkout")),
                folder.resolve(name).resolve(MadeUp.FACTS.name()));
    }

    private Path packed(Path root, String name) throws IOException {
        Path archive = folder.resolve(name);
        Archive.write(root, MadeUp.FACTS.committedAt(), archive);
        return archive;
    }

    private static List<TarArchiveEntry> entries(Path archive) throws IOException {
        List<TarArchiveEntry> entries = new ArrayList<>();
        try (InputStream packed = new GZIPInputStream(Files.newInputStream(archive));
                TarArchiveInputStream tar = new TarArchiveInputStream(packed)) {
            for (TarArchiveEntry entry = tar.getNextEntry(); entry != null; entry = tar.getNextEntry()) {
                entries.add(entry);
            }
        }
        return entries;
    }

    @Test
    void twoBuildsOfOneCommitAreTheSameBytes() throws IOException {
        Path one = packed(staged("one"), "one.tar.gz");
        Path later = staged("two");
        for (Path file : Archive.files(later).values()) {
            Files.setLastModifiedTime(file, FileTime.from(Instant.parse("2026-05-06T07:08:09.123Z")));
        }
        Path two = packed(later, "two.tar.gz");

        assertThat(Files.mismatch(one, two)).isEqualTo(-1);
    }

    @Test
    void namesAreInOrderAndNobodyOwnsThem() throws IOException {
        List<TarArchiveEntry> entries = entries(packed(staged("one"), "one.tar.gz"));

        assertThat(entries)
                .extracting(TarArchiveEntry::getName)
                .contains("parley-1.2.3-linux-x64/bin/parley", "parley-1.2.3-linux-x64/modules/transport/soap.jars")
                .allSatisfy(name -> assertThat(name).startsWith("parley-1.2.3-linux-x64/"));
        assertThat(entries)
                .extracting(entry -> entry.getName().replaceFirst("/$", ""))
                .isSortedAccordingTo(Comparator.naturalOrder());
        assertThat(entries).allSatisfy(entry -> {
            assertThat(entry.getLongUserId()).isZero();
            assertThat(entry.getUserName()).isEmpty();
            assertThat(entry.getGroupName()).isEmpty();
            assertThat(entry.getLastModifiedTime().toInstant()).isEqualTo(MadeUp.FACTS.committedAt());
        });
    }

    @Test
    void whatMayBeExecutedStaysSo() throws IOException {
        List<TarArchiveEntry> entries = entries(packed(staged("one"), "one.tar.gz"));

        assertThat(entries)
                .filteredOn(entry -> entry.isFile() && (entry.getMode() & 0111) != 0)
                .extracting(TarArchiveEntry::getName)
                .containsExactly("parley-1.2.3-linux-x64/bin/parley", "parley-1.2.3-linux-x64/runtime/bin/java");
    }

    @Test
    void aLinkIsPackedAsWhatItLeadsTo() throws IOException {
        Path root = staged("one");
        Files.createSymbolicLink(root.resolve("link"), Path.of("LICENSE"));
        Path archive = packed(root, "one.tar.gz");

        try (InputStream packed = new GZIPInputStream(Files.newInputStream(archive));
                TarArchiveInputStream tar = new TarArchiveInputStream(packed)) {
            TarArchiveEntry entry = tar.getNextEntry();
            while (!entry.getName().endsWith("/link")) {
                entry = tar.getNextEntry();
            }
            assertThat(entry.isSymbolicLink()).isFalse();
            assertThat(new String(tar.readAllBytes(), StandardCharsets.UTF_8)).isEqualTo("a licence\n");
        }
    }
}
