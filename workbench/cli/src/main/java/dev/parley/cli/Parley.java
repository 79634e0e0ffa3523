package dev.parley.cli;

import dev.parley.lab.LabException;
import dev.parley.model.BadInput;
import dev.parley.model.Launcher;
import dev.parley.model.Nearest;
import dev.parley.process.ProcessException;
import dev.parley.store.StoreException;
import dev.parley.studies.BadStudy;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;
import picocli.CommandLine.UnmatchedArgumentException;

/** {@code main()}. */
@Command(
        name = "parley",
        mixinStandardHelpOptions = true,
        scope = ScopeType.INHERIT,
        version = "parley " + Parley.VERSION,
        description = {
            "Shows how REST, gRPC, RPCX and others behave between services, on this machine, with your messages and"
                    + " topology.",
            ""
        },
        subcommands = {
            Compare.class,
            RunStudy.class,
            Validate.class,
            PlanStudy.class,
            ListRuns.class,
            Show.class,
            Gate.class,
            Export.class,
            Reproduce.class,
            Studies.class,
            ReportAgain.class,
            Technologies.class,
            Doctor.class,
            Dist.class,
            CommandLine.HelpCommand.class
        },
        synopsisSubcommandLabel = "COMMAND",
        footer = {
            "",
            "${ROOT-COMMAND-NAME} COMMAND --help says what a command does, what it writes where, and how it ends.",
            "",
            "Exit codes: 0 good, 1 error, 2 it cannot be told, 3 worse than the baseline, or a target is not met.",
            "",
            "Example: ${ROOT-COMMAND-NAME} compare --quick"
        })
public final class Parley implements Runnable {
    static final String VERSION = "0.1.0";

    @Option(names = "--debug", scope = ScopeType.INHERIT, description = "Show stack traces.")
    private boolean isDebug;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Override
    public void run() {
        throw new ParameterException(
                spec.commandLine(), "no command (expected: one of " + commands(spec.commandLine()) + ")");
    }

    public static void main(String[] args) {
        System.setOut(new PrintStream(
                new java.io.FileOutputStream(java.io.FileDescriptor.out), true, StandardCharsets.UTF_8));
        System.exit(run(args));
    }

    static int run(String... args) {
        Parley parley = new Parley();
        return new CommandLine(parley)
                .setCommandName(Launcher.name())
                .setParameterExceptionHandler((e, given) -> {
                    System.err.println("parley: " + said(e) + " (see "
                            + e.getCommandLine().getCommandSpec().qualifiedName() + " --help)");
                    return 1;
                })
                .setExecutionExceptionHandler((e, command, parsed) -> {
                    if (parley.isDebug) {
                        e.printStackTrace();
                    }
                    if (e instanceof InterruptedException) {
                        System.err.println("parley: interrupted");
                    } else if (e instanceof BadStudy bad) {
                        bad.mistakes().forEach(mistake -> System.err.println("parley: " + oneLine(mistake.toString())));
                    } else if (e instanceof BadInput
                            || e instanceof LabException
                            || e instanceof ProcessException
                            || e instanceof StoreException) {
                        System.err.println("parley: " + oneLine(e.getMessage()));
                    } else {
                        System.err.println("parley: unexpected: " + oneLine(e.toString()) + " (--debug shows where)");
                    }
                    return 1;
                })
                .setUsageHelpWidth(100)
                .execute(args);
    }

    private static String said(ParameterException e) {
        if (!(e instanceof UnmatchedArgumentException unmatched)
                || unmatched.getUnmatched().isEmpty()) {
            return oneLine(e.getMessage());
        }
        CommandLine command = e.getCommandLine();
        List<String> typed = unmatched.getUnmatched();
        if (unmatched.isUnknownOption()) {
            // an option may have its value behind an equals sign
            String option = typed.getFirst().split("=", 2)[0];
            return oneLine(e.getMessage())
                    + Nearest.of(option, command.getCommandSpec().optionsMap().keySet())
                            .map(near -> " (did you mean " + near + "?)")
                            .orElse("");
        }
        return command.getParent() == null
                ? "no command " + String.join(" ", typed) + " ("
                        + Nearest.hint(
                                typed.getFirst(), command.getSubcommands().keySet()) + "expected: one of "
                        + commands(command) + ")"
                : oneLine(e.getMessage());
    }

    private static String commands(CommandLine root) {
        return String.join(
                ", ",
                root.getSubcommands().keySet().stream()
                        .filter(name -> !name.equals("help"))
                        .toList());
    }

    private static String oneLine(@Nullable String message) {
        return message == null ? "unknown error" : message.strip().replaceAll("\\s*\\R\\s*", " ");
    }
}
