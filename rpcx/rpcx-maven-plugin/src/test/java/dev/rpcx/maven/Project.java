package dev.rpcx.maven;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.tool.SchemaTool;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.tools.ToolProvider;

/** A project with one service, whose record changes. */
final class Project {
    static final String LOCK = "src/main/resources/META-INF/rpcx/schema.lock";

    final Path folder;
    final Path lock;
    final Path classes;
    final Path source;

    Project(Path folder) throws IOException {
        this.folder = folder;
        lock = folder.resolve(LOCK);
        classes = folder.resolve("target/classes");
        source = folder.resolve("src/main/java/shop/Orders.java");
        Files.createDirectories(source.getParent());
    }

    /** Writes the source of the service, whose record has these components. */
    Project write(String components) throws IOException {
        Files.writeString(source, """
                package shop;

                import dev.rpcx.*;

                @RPCXServer("orders")
                public class Orders {
                    public record Order(%s) {}

                    @Method
                    public void place(Order order) {}

                    public static void main(String[] args) {
                        try (Server server = new Server(0, RegistryServer.registry(new Orders())).start()) {
                            System.out.println("serving");
                        }
                    }
                }
                """.formatted(components));
        return this;
    }

    /** Compiles the source as the build does before the goals run. */
    Project compile() throws IOException {
        Files.createDirectories(classes);
        assertThat(ToolProvider.getSystemJavaCompiler()
                        .run(
                                null,
                                null,
                                null,
                                "-proc:none",
                                "-parameters",
                                "-classpath",
                                System.getProperty("java.class.path"),
                                "-d",
                                classes.toString(),
                                source.toString()))
                .isZero();
        return this;
    }

    /** Returns the jar or the folder of RPCX's classes. */
    static Path rpcx() throws URISyntaxException {
        return Path.of(SchemaTool.class
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .toURI());
    }
}
