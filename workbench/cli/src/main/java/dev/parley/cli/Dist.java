package dev.parley.cli;

import dev.parley.lab.Lab;
import dev.parley.model.BadInput;
import java.nio.file.Path;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** The workbench for machines without a JDK, Maven or the repository. What makes it is a {@link Packager}. */
@Command(
        name = "dist",
        description = {
            "Makes an archive of Parley that runs on a machine without JDK, Maven or the repository."
                    + " Only in a checkout, and dist comes first.",
            ""
        },
        footer = {
            "",
            "Example: ${ROOT-COMMAND-NAME} dist --out /tmp writes an archive such as"
                    + " /tmp/parley-0.1.0-linux-x64.tar.gz. Where it is unpacked,"
                    + " parley-0.1.0-linux-x64/bin/parley compare --quick measures.",
            "",
            "Exit codes: 0 good, 1 error."
        })
final class Dist implements Callable<Integer> {
    @Option(
            names = "--out",
            paramLabel = "DIR",
            description = "Where the file goes; made if need be. Default: target/dist of the checkout.")
    private Optional<Path> out = Optional.empty();

    @Option(
            names = "--image",
            description = "A container image in a file that podman load and docker load read, instead of an archive.")
    private boolean isImage;

    @Override
    public Integer call() throws InterruptedException {
        Packager packager = ServiceLoader.load(Packager.class)
                .findFirst()
                .orElseThrow(() ->
                        new BadInput("dist", Lab.home(), "a checkout, where dist is the first word: ./parley dist"));
        packager.make(Parley.VERSION, out.orElse(Lab.home().resolve("target/dist")), isImage)
                .forEach(System.out::println);
        return 0;
    }
}
