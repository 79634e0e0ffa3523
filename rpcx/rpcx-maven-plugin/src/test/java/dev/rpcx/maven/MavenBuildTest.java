package dev.rpcx.maven;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.jar.JarOutputStream;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests the plugin in the builds of a project, which Maven runs in processes of its own. The project's POM has what the
 * guide shows: the BOM with a dependency, the annotation processor, and the plugin. RPCX, its BOM and the plugin lie in
 * a local repository as if they were installed. Everything else comes from the repository of the build that runs this
 * test.
 */
class MavenBuildTest {
    private static final Path GUIDE = Path.of("..", "rpcx-examples", "guide");
    private static final Pattern XML = Pattern.compile("^```xml\n(.*?)^```$", Pattern.DOTALL | Pattern.MULTILINE);
    private static final Pattern NETTY = Pattern.compile(".*/io/netty/([^/]+)/([^/]+)/\\1-\\2\\.jar");

    @TempDir
    private Path folder;

    private Path maven;
    private String version;
    private Project project;

    /** Makes the local repository, in which other artifacts are linked, and the project. */
    @BeforeEach
    void prepare() throws Exception {
        Optional<Path> found = Stream.of(System.getenv("PATH").split(File.pathSeparator))
                .map(entry -> Path.of(entry, "mvn"))
                .filter(Files::isExecutable)
                .findFirst();
        assumeThat(found).as("a Maven on the PATH").isPresent();
        assumeThat(System.getProperty("maven.repository"))
                .as("the repository of a build by Maven")
                .isNotNull();
        maven = found.orElseThrow();
        String descriptor = Files.readString(Path.of("target/classes/META-INF/maven/plugin.xml"));
        version = between(descriptor, "<version>", "</version>");
        linkOthers(Path.of(System.getProperty("maven.repository")));
        install("rpcx", "jar", Project.rpcx(), netty());
        installBom();
        install("rpcx-maven-plugin", "maven-plugin", Path.of("target/classes"), """
                <dependency><groupId>dev.rpcx</groupId><artifactId>rpcx</artifactId><version>%s</version></dependency>
                """.formatted(version));
        project = new Project(folder.resolve("orders"));
        Files.writeString(project.folder.resolve("pom.xml"), """
                <project xmlns="http://maven.apache.org/POM/4.0.0">
                  <modelVersion>4.0.0</modelVersion>
                  <groupId>shop</groupId>
                  <artifactId>orders</artifactId>
                  <version>2</version>
                  <properties>
                    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
                    <maven.compiler.release>17</maven.compiler.release>
                    <rpcx.version>%3$s</rpcx.version>
                  </properties>
                  <repositories>%1$s</repositories>
                  <pluginRepositories>%2$s</pluginRepositories>
                  %4$s
                  <build>
                    <pluginManagement>
                      <plugins>
                        <plugin><artifactId>maven-resources-plugin</artifactId><version>3.3.1</version></plugin>
                        <plugin><artifactId>maven-compiler-plugin</artifactId><version>3.14.1</version></plugin>
                      </plugins>
                    </pluginManagement>
                    <plugins>
                      %5$s
                      %6$s
                    </plugins>
                  </build>
                </project>
                """.formatted(
                        near("repository"),
                        near("pluginRepository"),
                        version,
                        guide("hello.md", 0),
                        guide("hello.md", 1),
                        guide("schema.md", 0)));
    }

    /** Returns a block of XML of a page of the guide. */
    private static String guide(String page, int number) throws IOException {
        return XML.matcher(Files.readString(GUIDE.resolve(page)))
                .results()
                .map(block -> block.group(1))
                .toList()
                .get(number);
    }

    /** Installs a BOM that has the version of RPCX and nothing else. */
    private void installBom() throws IOException {
        Path place = Files.createDirectories(
                folder.resolve("local/dev/rpcx/rpcx-bom").resolve(version));
        Files.writeString(place.resolve("rpcx-bom-" + version + ".pom"), """
                <project xmlns="http://maven.apache.org/POM/4.0.0">
                  <modelVersion>4.0.0</modelVersion>
                  <groupId>dev.rpcx</groupId>
                  <artifactId>rpcx-bom</artifactId>
                  <version>%1$s</version>
                  <packaging>pom</packaging>
                  <dependencyManagement>
                    <dependencies>
                      <dependency>
                        <groupId>dev.rpcx</groupId><artifactId>rpcx</artifactId><version>%1$s</version>
                      </dependency>
                    </dependencies>
                  </dependencyManagement>
                </project>
                """.formatted(version));
    }

    private static String between(String text, String begin, String end) {
        int from = text.indexOf(begin) + begin.length();
        return text.substring(from, text.indexOf(end, from));
    }

    /** Returns the element of the POM for the repository that has the artifacts of others. */
    private String near(String element) {
        return "<%1$s><id>near</id><url>%2$s</url><releases><checksumPolicy>ignore</checksumPolicy></releases></%1$s>"
                .formatted(element, folder.resolve("near").toUri());
    }

    /** Links all that another repository has, except RPCX, so that Maven does not write into that repository. */
    private void linkOthers(Path repository) throws IOException {
        Path near = Files.createDirectories(folder.resolve("near"));
        link(repository, near, "dev");
        if (Files.isDirectory(repository.resolve("dev"))) {
            link(repository.resolve("dev"), Files.createDirectories(near.resolve("dev")), "rpcx");
        }
    }

    private static void link(Path from, Path to, String except) throws IOException {
        try (Stream<Path> children = Files.list(from)) {
            for (Path child : children.toList()) {
                String name = child.getFileName().toString();
                if (!name.equals(except)) {
                    Files.createSymbolicLink(to.resolve(name), child);
                }
            }
        }
    }

    /** Returns the dependencies of RPCX, with the versions with which this test runs. */
    private static String netty() {
        StringBuilder dependencies = new StringBuilder();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            Matcher netty = NETTY.matcher(entry.replace('\\', '/'));
            if (netty.matches()) {
                dependencies.append("<dependency><groupId>io.netty</groupId><artifactId>%s</artifactId><version>%s"
                        .formatted(netty.group(1), netty.group(2)));
                dependencies.append("</version></dependency>\n");
            }
        }
        return dependencies.toString();
    }

    private void install(String artifact, String packaging, Path classes, String dependencies) throws IOException {
        install("dev/rpcx", artifact, version, packaging, dependencies, classes);
    }

    private void install(
            String group, String artifact, String ofVersion, String packaging, String dependencies, Path classes)
            throws IOException {
        Path place = Files.createDirectories(
                folder.resolve("local").resolve(group).resolve(artifact).resolve(ofVersion));
        String name = artifact + "-" + ofVersion;
        Files.writeString(place.resolve(name + ".pom"), """
                <project xmlns="http://maven.apache.org/POM/4.0.0">
                  <modelVersion>4.0.0</modelVersion>
                  <groupId>%s</groupId>
                  <artifactId>%s</artifactId>
                  <version>%s</version>
                  <packaging>%s</packaging>
                  <dependencies>%s</dependencies>
                </project>
                """.formatted(
                        group.replace('/', '.'), artifact, ofVersion, packaging, dependencies));
        Path jar = place.resolve(name + ".jar");
        if (Files.isRegularFile(classes)) {
            Files.copy(classes, jar);
        } else {
            pack(classes, jar);
        }
    }

    private static void pack(Path classes, Path jar) throws IOException {
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar))) {
            Files.walkFileTree(classes, new SimpleFileVisitor<>() {
                @Override
                public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                    out.putNextEntry(
                            new ZipEntry(classes.relativize(file).toString().replace('\\', '/')));
                    Files.copy(file, out);
                    return FileVisitResult.CONTINUE;
                }
            });
        }
    }

    /** Runs Maven in the project, and returns what it prints. */
    private String maven(int exitCode, String... args) throws Exception {
        List<String> command = new ArrayList<>(
                List.of(maven.toString(), "-B", "-ntp", "-Dmaven.repo.local=" + folder.resolve("local")));
        command.addAll(List.of(args));
        ProcessBuilder builder =
                new ProcessBuilder(command).directory(project.folder.toFile()).redirectErrorStream(true);
        builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
        // Each Maven runs only for seconds. For it, the second compiler and a garbage collector with several threads
        // would cost more than they save.
        builder.environment()
                .merge("MAVEN_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", (given, brief) -> given + " " + brief);
        Process process = builder.start();
        process.getOutputStream().close();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(said).isEqualTo(exitCode);
        return said;
    }

    private String build(int exitCode, String... args) throws Exception {
        List<String> all = new ArrayList<>(List.of("process-test-classes"));
        all.addAll(List.of(args));
        return maven(exitCode, all.toArray(String[]::new));
    }

    @Test
    void aBuildHoldsWhatTheGoalHasWritten() throws Exception {
        project.write("String id, int count");
        assertThat(build(1)).contains("no file " + project.lock);
        assertThat(maven(0, "rpcx:lock")).contains(project.lock + ": 3 types");
        String before = Files.readString(project.lock);
        assertThat(before).contains("  1 id string\n  2 count int\n");
        build(0);
        install("shop", "orders", "1", "jar", "", project.classes);

        project.write("String id, int total");
        assertThat(maven(1, "rpcx:lock"))
                .contains("shop.Orders$Order: count is gone and total is new", "-Drpcx.rename=OLD=NEW");
        assertThat(project.lock).hasContent(before);
        assertThat(build(1)).contains("shop.Orders$Order: count is gone and total is new");
        maven(0, "rpcx:lock", "-Drpcx.rename=count=total");
        assertThat(Files.readString(project.lock)).contains("  1 id string\n  2 total int\n");
        build(0, "-Drpcx.lastRelease=1");

        // The copy beside the classes would keep the numbers.
        Files.delete(project.lock);
        Files.delete(project.classes.resolve("META-INF/rpcx/schema.lock"));
        project.write("int total, String id");
        maven(0, "rpcx:lock");
        build(0);
        assertThat(build(1, "-Drpcx.lastRelease=1"))
                .contains("BOTH shop.Orders$Order.id: was number 1, is number 2", "orders-1.jar");
        assertThat(build(1, "-Drpcx.lastRelease=0"))
                .contains("lastRelease 0: ", "(expected: a version of this project that a repository has)");
    }

    /** Without a lock a server warns of each type whose numbers follow the order of its components. */
    @Test
    void aServiceWhoseTypesAreInTheLockStartsWithoutAWarning() throws Exception {
        project.write("String id, int count");
        maven(0, "compile");
        assertThat(served()).contains("serving", "its numbers depend on the order of declaration");
        maven(0, "rpcx:lock");
        maven(0, "compile");
        assertThat(project.classes.resolve("META-INF/rpcx/schema.lock")).hasSameTextualContentAs(project.lock);
        assertThat(served()).contains("serving").doesNotContain("order of declaration");
    }

    private String served() throws Exception {
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-cp",
                        project.classes + File.pathSeparator + System.getProperty("java.class.path"),
                        "shop.Orders")
                .redirectErrorStream(true)
                .start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(said).isZero();
        return said;
    }
}
