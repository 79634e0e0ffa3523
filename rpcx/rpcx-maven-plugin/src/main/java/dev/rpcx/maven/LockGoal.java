package dev.rpcx.maven;

import dev.rpcx.tool.SchemaTool;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import org.apache.maven.plugin.MojoFailureException;
import org.apache.maven.plugins.annotations.Execute;
import org.apache.maven.plugins.annotations.LifecyclePhase;
import org.apache.maven.plugins.annotations.Mojo;
import org.apache.maven.plugins.annotations.Parameter;
import org.apache.maven.plugins.annotations.ResolutionScope;
import org.jspecify.annotations.Nullable;

/**
 * Compiles the project, and writes or extends the lock file of its services. A person runs this goal, as
 * {@code mvn rpcx:lock}, and commits the file.
 *
 * <p>If a member is gone from a type while another one is new, nothing is written before it is known whether that is
 * the same member under a new name. The parameters {@code rename} and {@code removed} say so, and otherwise the person
 * at the terminal is asked.
 */
@Mojo(name = "lock", requiresDependencyResolution = ResolutionScope.COMPILE, threadSafe = true)
@Execute(phase = LifecyclePhase.PROCESS_CLASSES)
public final class LockGoal extends SchemaGoal {
    /** New names of members, each as {@code old=new}, or as {@code com.acme.Order.old=new} for one type alone. */
    @Parameter(property = "rpcx.rename")
    List<String> rename = List.of();

    /** Names of members that are gone and have no new name, each as {@code old} or {@code com.acme.Order.old}. */
    @Parameter(property = "rpcx.removed")
    List<String> removed = List.of();

    /** Whether Maven may ask; the option {@code -B} says that it may not. */
    @Parameter(defaultValue = "${settings.interactiveMode}", readonly = true)
    boolean isInteractive;

    @Override
    void run(List<String> named, ToIntFunction<List<String>> tool) throws MojoFailureException {
        List<String> options = new ArrayList<>();
        rename.forEach(each -> options.addAll(List.of("--rename", each)));
        removed.forEach(each -> options.addAll(List.of("--removed", each)));
        if (tool.applyAsInt(command("lock", options, lock.getPath(), named)) != 0) {
            throw new MojoFailureException("the lock is not written, see above (with Maven --rename OLD=NEW is"
                    + " -Drpcx.rename=OLD=NEW, and --removed OLD is -Drpcx.removed=OLD)");
        }
    }

    @Override
    Function<String, @Nullable String> ask() {
        return isInteractive ? SchemaTool.terminal() : question -> null;
    }
}
