package dev.rpcx.internal.call;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.ChangingService;
import dev.rpcx.LongForm;
import dev.rpcx.ReadValues;
import dev.rpcx.codec.Codec;
import dev.rpcx.codec.CodecException;
import dev.rpcx.codec.Codecs;
import dev.rpcx.codec.CompiledSources;
import dev.rpcx.codec.Limits;
import dev.rpcx.codec.RandomValues;
import dev.rpcx.internal.schema.FieldType;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.MessageType;
import dev.rpcx.internal.schema.MethodSchema;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.schema.Field;
import dev.rpcx.schema.SchemaException;
import dev.rpcx.tool.SchemaTool;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.Flow;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests {@code rpcx lock} and {@code rpcx compare} against what really happens. Services with random types change at
 * random, and each version reads what the other one writes. If a value has changed on the way, a break in that
 * direction must have been reported. If no break has been reported, no client must refuse the method when it connects.
 */
@Timeout(3600)
class ChangedServicesTest {
    private static final int SERVICES = Integer.getInteger("rpcx.changes.services", LongForm.of(60, 5_000));
    private static final int BATCH = 150;
    private static final int VERSIONS = 3;
    private static final int VALUES = 60;
    private static final long SEED = Long.getLong("rpcx.changes.seed", 20261126L);

    /**
     * A question of {@code rpcx lock}: the type, the name that stands where the old one stood, if there is one, and the
     * old name.
     */
    private static final Pattern QUESTION =
            Pattern.compile("(\\S+): (?:(\\S+) stands where .*|\\S+ is gone and .*) --removed (\\S+); .*");

    /** The exit status and the output of {@code rpcx}. */
    private record Told(int status, String text) {
        boolean names(String direction) {
            return text.lines().anyMatch(line -> line.startsWith(direction + " ") || line.startsWith("BOTH "));
        }

        /** Returns whether it asked about a new name at the number of an old one, which is read as a rename. */
        boolean asksOfNames() {
            return text.contains(" stands where ");
        }
    }

    /** One version of a service, as its processes see it. */
    private record Version(Class<?> service, Schema schema, Codecs codecs) {
        static Version of(Class<?> service, Schema schema) {
            return new Version(service, schema, Codecs.reflective(schema, Limits.STANDARD));
        }
    }

    @TempDir
    Path folder;

    private final Map<String, Integer> unproven = new TreeMap<>();
    private int compared;
    private int broken;
    private int refused;

    @Test
    void whatIsNotReadAsItWasWrittenHasBeenTold() throws Exception {
        List<String> missed = new ArrayList<>();
        for (int first = 0; first < SERVICES; first += BATCH) {
            List<List<ChangingService>> all = new ArrayList<>();
            for (int i = first; i < Math.min(SERVICES, first + BATCH); i++) {
                Random random = new Random(SEED + i);
                List<ChangingService> versions = new ArrayList<>();
                versions.add(new ChangingService("s" + i, random));
                while (versions.size() < VERSIONS) {
                    versions.add(versions.get(versions.size() - 1).changed(random.nextInt(4) == 0 ? 2 : 1));
                }
                all.add(versions);
            }
            List<ClassLoader> loaders = new ArrayList<>();
            for (int v = 0; v < VERSIONS; v++) {
                Map<String, String> sources = new LinkedHashMap<>();
                sources.put("world.Nullable", ChangingService.NULLABLE);
                for (int i = 0; i < all.size(); i++) {
                    sources.put("s" + (first + i) + ".Types", all.get(i).get(v).source());
                }
                loaders.add(CompiledSources.loader(sources));
            }
            for (int i = 0; i < all.size(); i++) {
                walk("s" + (first + i) + ".Types$Service", all.get(i), loaders, new Random(SEED - i), missed);
            }
        }
        assertThat(missed).as("seed %s", SEED).isEmpty();
        LongForm.figure(
                11,
                "%d pairs of versions of %d services of random types, seed %d: %d with breaks; no value was read as"
                        + " another in a direction in which `rpcx lock` or `compare` told no break; %d changes refused",
                compared,
                SERVICES,
                SEED,
                broken,
                refused);
        if (LongForm.ON) {
            unproven.forEach((what, times) -> System.out.println("unproven " + times + " " + what));
        }
    }

    private void walk(
            String name, List<ChangingService> versions, List<ClassLoader> loaders, Random random, List<String> missed)
            throws Exception {
        Path before = null;
        Path first = null;
        Version older = null;
        Version oldest = null;
        String asked = "";
        for (int v = 0; v < VERSIONS; v++) {
            Class<?> service = loaders.get(v).loadClass(name);
            Path file = folder.resolve(name + v + ".lock");
            if (before != null) {
                Files.copy(before, file);
            }
            Told told = lock(loaders.get(v), file, name);
            if (told.status == 1) {
                refused++;
                return;
            }
            Version now;
            try {
                now = Version.of(service, before == null ? new Schema(read(file)) : Schema.extending(read(before)));
            } catch (SchemaException e) {
                throw new AssertionError(name + ": locked, and then refused", e);
            }
            if (before != null && older != null) {
                judge(name, versions.get(v).changes(), told, older, now, random, missed);
                if (told.status == 0) {
                    expectToConnect(
                            name,
                            versions.get(v).changes(),
                            Version.of(older.service, new Schema(read(before))),
                            Version.of(service, new Schema(read(file))),
                            missed);
                }
                if (told.status == 0 && first != null && oldest != null && oldest != older) {
                    List<String> changes = new ArrayList<>(versions.get(v - 1).changes());
                    changes.addAll(versions.get(v).changes());
                    changes.add("over two versions");
                    Told compared = run(null, "compare", first.toString(), file.toString());
                    judge(name, changes, compared, oldest, now, random, missed);
                    changes.add("told by neither step");
                    judge(name, changes, new Told(0, asked + told.text), oldest, now, random, missed);
                }
            }
            asked = before == null ? "" : told.text;
            if (told.status == 3) {
                // the type counts as a new service from here on
                Files.delete(file);
                lock(loaders.get(v), file, name);
                now = Version.of(service, new Schema(read(file)));
                oldest = null;
            }
            if (oldest == null) {
                oldest = now;
                first = file;
            }
            older = now;
            before = file;
        }
    }

    /** Adds what a connection refuses, although {@code rpcx lock} has told no break and knows all renames. */
    private static void expectToConnect(
            String name, List<String> changes, Version older, Version newer, List<String> missed) {
        for (Method old : older.service.getMethods()) {
            MethodSchema before = MethodSchema.of(old, items(old), older.schema);
            Method now = method(newer.service, old.getName());
            MethodSchema after = MethodSchema.of(now, items(now), newer.schema);
            String forth = before.difference(after.types());
            String back = after.difference(before.types());
            if (forth != null || back != null) {
                missed.add("REFUSED " + name + " " + changes + ": " + forth + "; " + back);
            }
        }
    }

    private static LockFile read(Path file) throws IOException {
        return LockFile.parse(Files.readString(file), file.toString());
    }

    /**
     * Locks a service. A name that stands where another one stood is said to be a new name for the same, and every
     * other name that is gone to be gone for good. The text has the questions, too.
     */
    private static Told lock(ClassLoader loader, Path file, String service) {
        Told told = run(loader, "lock", file.toString(), service);
        List<String> answered = new ArrayList<>(List.of("lock"));
        told.text.lines().map(QUESTION::matcher).filter(Matcher::matches).forEach(question -> {
            String renamed = question.group(2);
            answered.addAll(
                    renamed == null
                            ? List.of("--removed", question.group(1) + "." + question.group(3))
                            : List.of("--rename", question.group(1) + "." + question.group(3) + "=" + renamed));
        });
        if (told.status != 1 || answered.size() == 1) {
            return told;
        }
        answered.addAll(List.of(file.toString(), service));
        Told answer = run(loader, answered.toArray(String[]::new));
        return new Told(answer.status, told.text + answer.text);
    }

    private static Told run(@Nullable ClassLoader loader, String... args) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        PrintStream out = new PrintStream(bytes, true, StandardCharsets.UTF_8);
        ClassLoader finds = loader == null ? ChangedServicesTest.class.getClassLoader() : loader;
        int status = new SchemaTool(out, out, finds).run(List.of(args));
        return new Told(status, bytes.toString(StandardCharsets.UTF_8));
    }

    private void judge(
            String name,
            List<String> changes,
            Told told,
            Version older,
            Version newer,
            Random random,
            List<String> missed) {
        compared++;
        broken += told.status == 3 ? 1 : 0;
        @Nullable String backward = null;
        @Nullable String forward = null;
        for (Method old : older.service.getMethods()) {
            Method now = method(newer.service, old.getName());
            String shape = MethodShape.difference(shape(old, older), shape(now, newer), true);
            if (shape != null) {
                backward = shape;
                forward = shape;
                continue;
            }
            for (int i = 0; i < VALUES; i++) {
                RandomValues values = RandomValues.few(random);
                backward = backward == null ? lost(old, older, now, newer, values) : backward;
                forward = forward == null ? lost(now, newer, old, older, values) : forward;
            }
        }
        hold("BACKWARD", backward, name, changes, told, missed);
        hold("FORWARD", forward, name, changes, told, missed);
    }

    private void hold(
            String direction,
            @Nullable String lost,
            String name,
            List<String> changes,
            Told told,
            List<String> missed) {
        if (lost != null && !told.names(direction) && !told.asksOfNames()) {
            missed.add(direction + " " + name + " " + changes + ": " + lost + "; told: " + told);
        } else if (lost == null && told.names(direction) && changes.size() == 1) {
            unproven.merge(
                    direction + " "
                            + told.text
                                    .strip()
                                    .replaceAll("s\\d+\\.Types\\$", "")
                                    .replaceAll("Service/", "") + " " + changes,
                    1,
                    Integer::sum);
        }
    }

    private static Method method(Class<?> service, String name) {
        return Arrays.stream(service.getMethods())
                .filter(method -> method.getName().equals(name))
                .findFirst()
                .orElseThrow();
    }

    private static @Nullable Type items(Method method) {
        for (Parameter parameter : method.getParameters()) {
            if (parameter.getParameterizedType() instanceof ParameterizedType type
                    && type.getRawType() == Flow.Publisher.class) {
                return type.getActualTypeArguments()[0];
            }
        }
        return null;
    }

    private static int shape(Method method, Version version) {
        return MethodShape.of(method, items(method), version.codecs);
    }

    /** Returns which value one version did not read as the other had written it, or null if there is none. */
    private static @Nullable String lost(Method by, Version writer, Method of, Version reader, RandomValues values) {
        Type written = items(by);
        Type read = items(of);
        String lost = written != null && read != null
                ? lost(
                        writer.schema.value(written, by),
                        writer.codecs.value(written, by),
                        reader.schema.value(read, of),
                        reader.codecs.value(read, of),
                        values)
                : lostArguments(by, writer, of, reader, values);
        return lost != null
                ? lost
                : lost(
                        writer.schema.result(by),
                        writer.codecs.result(by),
                        reader.schema.result(of),
                        reader.codecs.result(of),
                        values);
    }

    private static @Nullable String lost(
            MessageType from, Codec<Object> writer, MessageType to, Codec<Object> reader, RandomValues values) {
        boolean isNothing = isNothing(to);
        if (isNothing(from)) {
            return isNothing ? null : "nothing is written, and something read";
        }
        Object value = value(from, values);
        ByteBuf bytes = Unpooled.buffer();
        try {
            writer.write(value, bytes);
        } catch (CodecException e) {
            return null;
        }
        try {
            Object back = reader.read(bytes);
            return isNothing || ReadValues.isSame(content(from), value, content(to), back)
                    ? null
                    : text(value) + " is read as " + text(back);
        } catch (CodecException e) {
            return isNothing ? null : text(value) + " is refused: " + e.getMessage();
        }
    }

    private static @Nullable Object value(MessageType type, RandomValues values) {
        return values.message(type, 0);
    }

    private static boolean isNothing(MessageType type) {
        return type.kind() == MessageType.Kind.WRAPPER && type.fields().isEmpty();
    }

    private static FieldType content(MessageType type) {
        return type.kind() == MessageType.Kind.WRAPPER ? type.fields().get(0) : whole(type);
    }

    private static FieldType whole(MessageType type) {
        return new FieldType("whole", 1, FieldType.Holder.PLAIN, type, null, type.javaClass());
    }

    private static @Nullable String lostArguments(
            Method by, Version writer, Method of, Version reader, RandomValues values) {
        MessageType from = writer.schema.parameters(by);
        MessageType to = reader.schema.parameters(of);
        Object[] arguments = from.kind() == MessageType.Kind.PARAMETERS
                ? values.arguments(from)
                : new Object[] {values.message(from, 0)};
        ByteBuf bytes = Unpooled.buffer();
        try {
            writer.codecs.parameters(by).write(arguments, bytes);
        } catch (CodecException e) {
            return null;
        }
        Object[] back;
        try {
            back = reader.codecs.parameters(of).read(bytes);
        } catch (CodecException e) {
            return by.getName() + text(arguments) + " is refused: " + e.getMessage();
        }
        for (int i = 0; i < arguments.length; i++) {
            int there = placeOf(by.getParameters(), i, of.getParameters());
            if (there >= 0 && !ReadValues.isSame(parameter(from, i), arguments[i], parameter(to, there), back[there])) {
                return by.getName() + text(arguments) + " is read as " + text(back);
            }
        }
        return null;
    }

    /** Finds the place of a parameter in the other version, where it may have another name. */
    private static int placeOf(Parameter[] all, int place, Parameter[] others) {
        Field number = all[place].getAnnotation(Field.class);
        if (number != null) {
            return Arrays.stream(others)
                    .map(each -> each.getAnnotation(Field.class))
                    .toList()
                    .indexOf(number);
        }
        for (int i = 0; i < others.length; i++) {
            if (others[i].getName().equals(all[place].getName())) {
                return i;
            }
        }
        boolean isAnothers = place < others.length
                && Arrays.stream(all).anyMatch(each -> each.getName().equals(others[place].getName()));
        return place < others.length && !isAnothers ? place : -1;
    }

    private static FieldType parameter(MessageType of, int place) {
        return of.kind() == MessageType.Kind.PARAMETERS
                ? of.fields().get(of.positions().indexOf(place))
                : whole(of);
    }

    private static String text(@Nullable Object value) {
        return value instanceof Object[] all ? Arrays.deepToString(all) : String.valueOf(value);
    }
}
