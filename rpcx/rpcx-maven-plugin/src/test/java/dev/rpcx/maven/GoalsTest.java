package dev.rpcx.maven;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.maven.plugin.MojoFailureException;
import org.apache.maven.plugin.logging.SystemStreamLog;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the goals on compiled classes, without Maven. */
class GoalsTest {
    @TempDir
    private Path folder;

    private Project project;
    private final List<String> logged = new ArrayList<>();

    @BeforeEach
    void project() throws IOException {
        project = new Project(folder);
    }

    private final class Log extends SystemStreamLog {
        @Override
        public void info(CharSequence text) {
            logged.add("info " + text);
        }

        @Override
        public void warn(CharSequence text) {
            logged.add("warn " + text);
        }

        @Override
        public void error(CharSequence text) {
            logged.add("error " + text);
        }
    }

    private <T extends SchemaGoal> T set(T goal) {
        logged.clear();
        goal.lock = project.lock.toFile();
        goal.classes = project.classes.toFile();
        goal.classPath = List.of(project.classes.toString());
        goal.setLog(new Log());
        return goal;
    }

    private LockGoal lock() {
        return set(new LockGoal());
    }

    private CheckGoal check() {
        return set(new CheckGoal(null));
    }

    @Test
    void theLockOfTheProjectsServicesIsWrittenAndHolds() throws Exception {
        project.write("String id, int count").compile();
        assertThatThrownBy(() -> check().execute()).isInstanceOf(MojoFailureException.class);
        assertThat(logged).containsExactly("error no file " + project.lock + " (`rpcx lock` writes it)");
        lock().execute();
        assertThat(logged).contains("info " + project.lock + ": 3 types");
        assertThat(Files.readString(project.lock))
                .contains("message shop.Orders$Order\n  1 id string\n  2 count int\n")
                .contains("message orders/place.request\n");
        check().execute();
        assertThat(logged).isEmpty();
    }

    @Test
    void aLockThatIsBehindTheClassesFailsTheBuild() throws Exception {
        project.write("String id, int count").compile();
        lock().execute();
        String before = Files.readString(project.lock);
        project.write("String id, int count, String note").compile();
        assertThatThrownBy(() -> check().execute())
                .isInstanceOf(MojoFailureException.class)
                .hasMessageContaining("mvn rpcx:lock");
        assertThat(logged).anyMatch(line -> line.startsWith("error " + project.lock + ": behind the classes"));
        assertThat(project.lock).hasContent(before);
        lock().execute();
        assertThat(Files.readString(project.lock)).contains("  3 note string\n");
    }

    @Test
    void aNewNameIsAParameterOfTheGoal() throws Exception {
        project.write("String id, int count").compile();
        lock().execute();
        String before = Files.readString(project.lock);
        project.write("String id, int total").compile();
        assertThatThrownBy(() -> lock().execute())
                .isInstanceOf(MojoFailureException.class)
                .hasMessageContaining("-Drpcx.rename=OLD=NEW");
        assertThat(logged).anyMatch(line -> line.startsWith("error shop.Orders$Order: count is gone and total is new"));
        assertThat(project.lock).hasContent(before);
        LockGoal removing = lock();
        removing.removed = List.of("count");
        removing.execute();
        assertThat(Files.readString(project.lock)).contains("  removed 2 count int\n  3 total int\n");
        Files.writeString(project.lock, before);
        LockGoal renaming = lock();
        renaming.rename = List.of("count=total");
        renaming.execute();
        assertThat(Files.readString(project.lock)).contains("  1 id string\n  2 total int\n");
    }

    /** A lock that is deleted and written again fits the classes, and not what the last release sends. */
    @Test
    void theLockIsComparedWithThatOfTheLastRelease() throws Exception {
        project.write("String id, String note").compile();
        lock().execute();
        Path released = Files.copy(project.lock, folder.resolve("released.lock"));
        Files.delete(project.lock);
        project.write("String note, String id").compile();
        lock().execute();
        check().execute();
        CheckGoal comparing = check();
        comparing.lastReleaseFile = released.toFile();
        assertThatThrownBy(comparing::execute)
                .isInstanceOf(MojoFailureException.class)
                .hasMessageContaining("the lock breaks with that of the last release, " + released);
        assertThat(logged).anyMatch(line -> line.startsWith("error BOTH shop.Orders$Order.id: was number 1"));
    }

    @Test
    void aModuleWithoutServicesHasNoLock() throws Exception {
        lock().execute();
        assertThat(logged).hasSize(1).allMatch(line -> line.startsWith("info no class with @RPCXServer"));
        check().execute();
        assertThat(project.lock).doesNotExist();
        Files.createDirectories(project.lock.getParent());
        Files.writeString(project.lock, "message shop.Gone\n  1 id string\n");
        assertThatThrownBy(() -> check().execute()).isInstanceOf(MojoFailureException.class);
        assertThat(logged).anyMatch(line -> line.contains(": no service (expected: "));
    }

    @Test
    void servicesMayBeNamed() throws Exception {
        project.write("String id").compile();
        LockGoal goal = lock();
        goal.services = List.of("shop.Absent");
        assertThatThrownBy(goal::execute).isInstanceOf(MojoFailureException.class);
        assertThat(logged).anyMatch(line -> line.startsWith("error shop.Absent: no such class"));
    }

    @Test
    void theDescriptorNamesTheGoals() throws Exception {
        String descriptor = Files.readString(Path.of("target/classes/META-INF/maven/plugin.xml"));
        assertThat(descriptor)
                .contains("<goalPrefix>rpcx</goalPrefix>", "<goal>lock</goal>", "<goal>check</goal>")
                .contains("<phase>process-test-classes</phase>", "<executePhase>process-classes</executePhase>");
    }
}
