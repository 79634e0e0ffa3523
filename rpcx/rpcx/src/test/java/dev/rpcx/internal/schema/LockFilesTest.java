package dev.rpcx.internal.schema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.schema.SchemaException;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests several lock files on one class path. The lock file of an application also has the types of its libraries. */
class LockFilesTest {
    private static final String HEAD = "message com.acme.Greeting\n";

    @TempDir
    @Nullable
    Path folder;

    private LockFile locks(String... texts) throws IOException {
        URL[] roots = new URL[texts.length];
        for (int i = 0; i < texts.length; i++) {
            Path root = folder().resolve("root" + i);
            Path file = root.resolve(LockFile.RESOURCE);
            Files.createDirectories(file.getParent());
            Files.writeString(file, texts[i]);
            roots[i] = root.toUri().toURL();
        }
        try (URLClassLoader loader = new URLClassLoader(roots, null)) {
            return LockFile.of(loader);
        }
    }

    private Path folder() {
        if (folder == null) {
            throw new IllegalStateException("JUnit gives a folder");
        }
        return folder;
    }

    @Test
    void whatOneFileHasMoreOfATypeIsTakenInAnyOrder() throws IOException {
        String older = HEAD + "  1 name string\n";
        String newer = HEAD + "  1 name string\n  2 mood int32\n";
        for (LockFile lock : List.of(locks(older, newer), locks(newer, older))) {
            assertThat(lock.entries().get("com.acme.Greeting").lines().values())
                    .containsExactlyInAnyOrder(
                            new LockFile.Line(1, "name", "string", false),
                            new LockFile.Line(2, "mood", "int32", false));
        }
    }

    @Test
    void whatIsRemovedInOneFileOnlyIsStillTaken() throws IOException {
        String before = HEAD + "  1 name string\n  2 mood int32\n";
        String after = HEAD + "  1 name string\n  removed 2 mood int32\n";
        for (LockFile lock : List.of(locks(before, after), locks(after, before))) {
            assertThat(lock.entries()
                            .get("com.acme.Greeting")
                            .lines()
                            .get("mood")
                            .removed())
                    .isFalse();
        }
    }

    record Told(String text) {}

    @Test
    void whatOnlyAnotherFileHasIsNotWrittenAsRemoved() throws IOException {
        String head = "message " + Told.class.getName() + "\n  1 text string\n";
        Schema schema = Schema.extending(locks(head + "  8 gone string\n  9 more string\n"));
        schema.value(Told.class);
        assertThat(LockFile.none().extended(schema, Map.of()).text()).endsWith(head);
        assertThat(LockFile.parse(head + "  8 gone string\n", "own")
                        .extended(schema, Map.of())
                        .text())
                .endsWith(head + "  removed 8 gone string\n");
        Schema later = Schema.extending(locks(head + "  removed 9 more string\n"));
        later.value(Told.class);
        assertThat(LockFile.none().extended(later, Map.of()).text()).endsWith(head + "  removed 9 more string\n");
    }

    @Test
    void formerNamesStandBelowTheirMemberAndStayThere() {
        String text = HEAD
                + "  1 name string\n  was 1 title\n# why it was called that\n  was 1 heading\n  removed 2 mood int32\n";
        LockFile lock = LockFile.parse(text, "own");
        assertThat(formerNames(lock, "name")).containsExactly("title", "heading");
        assertThat(lock.text()).endsWith(text);
        LockFile renamed = lock.renamed(List.of(new LockFile.Rename("com.acme.Greeting", "name", "text")));
        assertThat(formerNames(renamed, "text")).containsExactly("title", "heading", "name");
        LockFile again = renamed.renamed(List.of(new LockFile.Rename("com.acme.Greeting", "text", "title")));
        assertThat(formerNames(again, "title")).containsExactly("heading", "name", "text");
    }

    private static List<String> formerNames(LockFile lock, String member) {
        return lock.entries().get("com.acme.Greeting").lines().get(member).formerNames();
    }

    @Test
    void formerNamesAreKeptInTheNextVersionAndOfAllFiles() throws IOException {
        String head = "message " + Told.class.getName() + "\n  1 text string\n  was 1 words\n";
        Schema schema = Schema.extending(LockFile.parse(head, "own"));
        schema.value(Told.class);
        assertThat(LockFile.parse(head, "own").extended(schema, Map.of()).text())
                .endsWith(head);
        String plain = HEAD + "  1 name string\n";
        String renamed = plain + "  was 1 title\n";
        for (LockFile lock : List.of(locks(plain, renamed), locks(renamed, plain))) {
            assertThat(formerNames(lock, "name")).containsExactly("title");
        }
    }

    @Test
    void aFormerNameOfNoMemberIsRefused() {
        for (String line : List.of("  was 2 title", "  was 1", "  was 1 title string", "  was one title")) {
            assertThatThrownBy(() -> LockFile.parse(HEAD + "  1 name string\n" + line + "\n", "own"))
                    .isInstanceOf(SchemaException.class)
                    .hasMessageStartingWith("own:3: " + line.strip() + " (expected: was, a number and a former name");
        }
        assertThatThrownBy(() -> LockFile.parse(HEAD + "  was 1 title\n  1 name string\n", "own"))
                .isInstanceOf(SchemaException.class)
                .hasMessageStartingWith("own:2: was 1 title (expected: ");
    }

    /** A class says which constant that is, and the constant has number 0 under any name. */
    @Test
    void whatStandsForTheUnknownMayHaveAnotherNameInEachFile() throws IOException {
        String before = "enum com.acme.Mood\n  0 UNKNOWN unknown\n  1 GOOD constant\n";
        for (String name : List.of("UNKNOWN", "MISSING")) {
            String after = before.replace("UNKNOWN", name) + "  2 BAD constant\n";
            for (LockFile lock : List.of(locks(before, after), locks(after, before))) {
                assertThat(lock.entries().get("com.acme.Mood").lines().values())
                        .filteredOn(line -> line.number() == 0)
                        .hasSize(1);
                assertThat(lock.entries().get("com.acme.Mood").lines()).hasSize(3);
            }
        }
        String moved = "enum com.acme.Mood\n  0 NONE unknown\n  3 UNKNOWN constant\n";
        assertThatThrownBy(() -> locks(before, moved)).isInstanceOf(SchemaException.class);
        assertThatThrownBy(() -> locks(moved, before)).isInstanceOf(SchemaException.class);
        assertThatThrownBy(() -> locks(before, before.replace("0 UNKNOWN unknown", "0 SOME constant")))
                .isInstanceOf(SchemaException.class)
                .hasMessageContaining("number 0 is that of");
    }

    /** No lock gives numbers to parameters. Their numbers come from the method, whatever the parameters are called. */
    @Test
    void whatFilesSayOfCallsBindsNobody() throws IOException {
        String call = "message greeter/hello.request\n";
        assertThat(locks(call + "  1 name string\n", call + "  1 who string\n", HEAD + "  1 name string\n")
                        .entries())
                .containsOnlyKeys("com.acme.Greeting");
    }

    @Test
    void filesThatContradictEachOtherAreRefusedByName() {
        String one = HEAD + "  1 name string\n  2 mood int32\n";
        Stream.of(
                        HEAD + "  2 name string\n  1 mood int32\n",
                        HEAD + "  3 name string\n",
                        HEAD + "  1 title string\n",
                        "enum com.acme.Greeting\n  1 name constant\n")
                .forEach(other -> assertThatThrownBy(() -> locks(one, other))
                        .isInstanceOf(SchemaException.class)
                        .hasMessageContaining("root0")
                        .hasMessageContaining("root1")
                        .hasMessageContaining("com.acme.Greeting"));
    }
}
