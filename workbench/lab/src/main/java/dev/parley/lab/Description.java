package dev.parley.lab;

import dev.parley.model.Study;
import dev.parley.model.Technology;
import dev.parley.process.Child;
import dev.parley.process.ProcessException;
import dev.parley.protocol.ServiceCommand;
import dev.parley.protocol.ServiceEvent;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** What a technology says of itself, asked in a process with its own class path: the lab never loads one. */
final class Description implements AutoCloseable {
    private static final Duration TO_ANSWER = Duration.ofSeconds(30);

    private final String technology;
    private final Child child;
    private final Conversation<ServiceCommand, ServiceEvent> conversation;

    /** What the module of the technology said of each of its variants, by name. */
    private final Map<String, ServiceEvent.Described> described = new TreeMap<>();

    /** Asks; several can be asked at once. */
    Description(String technology, Installation installation, Path log) {
        this.technology = technology;
        this.child = Child.java(
                "description of " + technology,
                ServiceJvm.FLAGS,
                installation.classPath(),
                ServiceJvm.SERVICE,
                List.of("describe"),
                log);
        this.conversation = new Conversation<>(child, ServiceEvent.class);
    }

    /**
     * The technologies of a study that have an interface for its work, each asked in a process of a second; a note says
     * which have none.
     *
     * @throws LabException if none is left
     */
    static List<Technology> of(Study study, Installations installations, Path logs, LabListener listener)
            throws InterruptedException {
        List<Description> asked = new ArrayList<>();
        try {
            for (String name : study.technologies()) {
                asked.add(new Description(
                        name, installations.leaf(name, study), logs.resolve("describe-" + name + ".log")));
            }
            List<Technology> technologies = new ArrayList<>();
            for (Description description : asked) {
                Technology technology = description.answer();
                if (description.carries(study.work())) {
                    technologies.add(technology);
                } else {
                    listener.note(technology.name() + " is left out: it has no interface for the work " + study.work());
                }
            }
            if (technologies.isEmpty()) {
                throw new LabException("no technology is left to measure: none of "
                        + String.join(", ", study.technologies()) + " has an interface for the work " + study.work());
            }
            return technologies;
        } finally {
            asked.forEach(Description::close);
        }
    }

    Technology answer() throws InterruptedException {
        return answers(List.of(technology)).getFirst();
    }

    /** Whether it can carry a work's calls, once it has answered. */
    boolean carries(String work) {
        return Optional.ofNullable(described.get(technology))
                .map(said -> !said.cannot().contains(work))
                .orElse(true);
    }

    /** Of several variants in one module, in the order asked for. */
    List<Technology> answers(List<String> names) throws InterruptedException {
        ProcessException ended = readAll();
        List<Technology> answers = new ArrayList<>();
        for (String name : names) {
            answers.add(Optional.ofNullable(described.get(name))
                    .map(ServiceEvent.Described::technology)
                    .orElseThrow(() -> new LabException(
                            "the module of " + name + " did not describe it: " + ended.getMessage(), ended)));
        }
        return answers;
    }

    /** Reads until the process has ended, and returns how. */
    private ProcessException readAll() throws InterruptedException {
        try {
            while (true) {
                ServiceEvent said = conversation
                        .next(TO_ANSWER)
                        .orElseThrow(() -> new LabException(
                                technology + " did not describe itself within " + TO_ANSWER.toSeconds() + " s"));
                if (said instanceof ServiceEvent.Described one) {
                    described.put(one.technology().name(), one);
                }
            }
        } catch (ProcessException ended) {
            return ended;
        }
    }

    @Override
    public void close() {
        child.close();
    }
}
