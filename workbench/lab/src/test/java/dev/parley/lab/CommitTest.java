package dev.parley.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CommitTest {
    @TempDir
    Path folder;

    private Path checkout;

    private void git(String... arguments) throws Exception {
        List<String> command = new ArrayList<>(
                List.of("git", "-C", checkout.toString(), "-c", "user.name=test", "-c", "user.email=test@localhost"));
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        assertThat(process.waitFor()).as(said).isZero();
    }

    private void write(String file) throws Exception {
        Path path = checkout.resolve(file);
        Files.createDirectories(path.getParent());
        Files.writeString(path, Files.exists(path) ? Files.readString(path) + "more" : "some");
    }

    /** Else a run says "dirty" only because the run before it has written its page. */
    @Test
    void aPageThatARecordingWritesMakesNoCommitDirty() throws Exception {
        checkout = Files.createDirectory(folder.resolve("checkout"));
        git("init", "-q");
        for (String file : List.of("README.md", "docs/results/page.md", "docs/examples/study.yaml", "Source.java")) {
            write(file);
        }
        git("add", "-A");
        git("commit", "-q", "-m", "one");
        String clean = Checkout.commit(checkout);
        assertThat(clean).matches("[0-9a-f]{12}");
        write("README.md");
        write("docs/results/page.md");
        write("target/untracked");
        assertThat(Checkout.commit(checkout)).isEqualTo(clean);
        write("docs/examples/study.yaml");
        assertThat(Checkout.commit(checkout)).isEqualTo(clean + "-dirty");
        git("checkout", "-q", "docs");
        write("Source.java");
        assertThat(Checkout.commit(checkout)).isEqualTo(clean + "-dirty");
    }

    @Test
    void outsideOfACheckoutItIsUnknown() {
        assertThat(Checkout.commit(folder.resolve("nothing"))).isEqualTo("unknown");
        assertThat(Checkout.committedAt(folder.resolve("nothing"))).isEqualTo(Instant.EPOCH);
    }

    /** A distribution may be unpacked below somebody's own repository. */
    @Test
    void inADistributionItIsTheOneThatItWasBuiltFrom() throws Exception {
        checkout = Files.createDirectory(folder.resolve("repository"));
        git("init", "-q");
        write("README.md");
        git("add", "-A");
        git("commit", "-q", "-m", "one");
        Path distribution = Files.createDirectory(checkout.resolve("parley"));
        Files.writeString(distribution.resolve("build.properties"), "version=1\ncommit=0123456789ab\n");

        assertThat(Checkout.commit(distribution)).isEqualTo("0123456789ab");
    }

    @Test
    void theDateIsThatOfTheLastCommit() throws Exception {
        checkout = Files.createDirectory(folder.resolve("dated"));
        git("init", "-q");
        write("README.md");
        git("add", "-A");
        git("commit", "-q", "-m", "one");

        assertThat(Checkout.committedAt(checkout)).isBetween(Instant.now().minusSeconds(60), Instant.now());
    }
}
