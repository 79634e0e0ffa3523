package dev.rpcx.maven;

import java.io.File;
import java.util.List;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import javax.inject.Inject;
import org.apache.maven.plugin.MojoExecutionException;
import org.apache.maven.plugin.MojoFailureException;
import org.apache.maven.plugins.annotations.LifecyclePhase;
import org.apache.maven.plugins.annotations.Mojo;
import org.apache.maven.plugins.annotations.Parameter;
import org.apache.maven.plugins.annotations.ResolutionScope;
import org.eclipse.aether.RepositorySystem;
import org.eclipse.aether.RepositorySystemSession;
import org.eclipse.aether.artifact.DefaultArtifact;
import org.eclipse.aether.repository.RemoteRepository;
import org.eclipse.aether.resolution.ArtifactRequest;
import org.eclipse.aether.resolution.ArtifactResolutionException;
import org.jspecify.annotations.Nullable;

/**
 * Compares the compiled services with their lock file, before the tests run. Fails the build if the services break with
 * the lock file, or if the file is not up to date. If a last release is given, its lock file is compared with the
 * present one too, which shows lines that were changed or taken out by hand.
 */
@Mojo(
        name = "check",
        defaultPhase = LifecyclePhase.PROCESS_TEST_CLASSES,
        requiresDependencyResolution = ResolutionScope.COMPILE,
        threadSafe = true)
@SuppressWarnings("NullAway.Init") // Maven sets the parameters
public final class CheckGoal extends SchemaGoal {
    /** Version of the project's last release, whose jar has the lock file to compare with. */
    @Parameter(property = "rpcx.lastRelease")
    @Nullable
    String lastRelease;

    /** Jar or lock file of the last release, for a release that is in no repository. {@code lastRelease} is ignored. */
    @Parameter(property = "rpcx.lastReleaseFile")
    @Nullable
    File lastReleaseFile;

    @Parameter(defaultValue = "${project.groupId}", readonly = true)
    String groupId;

    @Parameter(defaultValue = "${project.artifactId}", readonly = true)
    String artifactId;

    @Parameter(defaultValue = "${repositorySystemSession}", readonly = true)
    RepositorySystemSession session;

    @Parameter(defaultValue = "${project.remoteProjectRepositories}", readonly = true)
    List<RemoteRepository> repositories;

    private final RepositorySystem resolver;

    /**
     * Creates the goal.
     *
     * @param resolver finds the jar of the last release
     */
    @Inject
    public CheckGoal(RepositorySystem resolver) {
        this.resolver = resolver;
    }

    @Override
    void run(List<String> named, ToIntFunction<List<String>> tool) throws MojoExecutionException, MojoFailureException {
        int status = tool.applyAsInt(command("check", List.of(), lock.getPath(), named));
        File released = released();
        if (released != null && lock.exists()) {
            int compared = tool.applyAsInt(command("compare", List.of(), released.getPath(), List.of(lock.getPath())));
            if (compared != 0) {
                throw new MojoFailureException("the lock breaks with that of the last release, " + released
                        + ", see above (expected: the lines that it had, and new ones)");
            }
        }
        if (status != 0) {
            throw new MojoFailureException("the services break with their lock, or are not in it, see above"
                    + " (`rpcx lock` is `mvn rpcx:lock`; commit the file that it writes)");
        }
    }

    private @Nullable File released() throws MojoExecutionException {
        if (lastReleaseFile != null || lastRelease == null) {
            return lastReleaseFile;
        }
        DefaultArtifact jar = new DefaultArtifact(groupId, artifactId, "jar", lastRelease);
        try {
            return resolver.resolveArtifact(session, new ArtifactRequest(jar, repositories, null))
                    .getArtifact()
                    .getFile();
        } catch (ArtifactResolutionException e) {
            throw new MojoExecutionException(
                    "lastRelease " + lastRelease + ": " + e.getMessage()
                            + " (expected: a version of this project that a repository has)",
                    e);
        }
    }

    @Override
    Function<String, @Nullable String> ask() {
        return question -> null;
    }
}
