package dev.parley.dist;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DistributionTest {
    /** Linux gives no process an id as high as this. Source: proc_sys_kernel(5), pid_max. */
    private static final long NOBODY = 999_999_999;

    @TempDir
    Path folder;

    /** Ctrl-C ends a process that makes a distribution before it can clear away. */
    @Test
    void whatAProcessThatIsGoneHasLeftIsRemovedAndNothingElse() throws IOException {
        Path abandoned = Files.createDirectories(folder.resolve("making-" + NOBODY + "-1/parley/lib"));
        Files.writeString(abandoned.resolve("some.jar"), "a jar");
        Path underWay = Files.createDirectory(
                folder.resolve("making-" + ProcessHandle.current().pid() + "-2"));
        Path made = Files.writeString(folder.resolve("parley-0.1.0-linux-x64.tar.gz"), "an archive");
        Distribution.removeAbandoned(folder);
        assertThat(folder).isDirectoryNotContaining("glob:**/making-" + NOBODY + "-1");
        assertThat(underWay).isDirectory();
        assertThat(made).exists();
    }
}
