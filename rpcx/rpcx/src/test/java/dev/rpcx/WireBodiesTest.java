package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.codec.Codecs;
import dev.rpcx.codec.Limits;
import dev.rpcx.internal.schema.LockFile;
import dev.rpcx.internal.schema.Schema;
import dev.rpcx.schema.Field;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/**
 * Tests the bodies that {@code rpcx/spec/wire.md} shows. The codecs write exactly these bytes, and read the same values
 * from them.
 */
class WireBodiesTest {
    @Retention(RetentionPolicy.RUNTIME)
    @Target({ElementType.TYPE_USE, ElementType.PARAMETER})
    @interface Nullable {}

    record Person(@Field(1) String name) {}

    interface Methods {
        void text(String text);

        void optionalText(Optional<String> text);

        void nullableText(@Nullable String text);

        void numbers(@Field(1) int a, @Field(2) int b);

        void box(Integer number);

        CompletableFuture<Integer> stage();

        CompletableFuture<@Nullable Integer> nullableStage();

        int result();

        void person(Person person);

        void optionalPerson(Optional<Person> person);

        void nullablePerson(@Nullable Person person);

        void list(List<String> list);

        void nullableList(@Nullable List<String> list);
    }

    private final Codecs codecs = Codecs.of(new Schema(LockFile.none()), Limits.STANDARD);

    private static java.lang.reflect.Method method(String name) {
        return Arrays.stream(Methods.class.getMethods())
                .filter(method -> method.getName().equals(name))
                .findFirst()
                .orElseThrow();
    }

    /** Returns the rows of the page. An entry in the column "method" holds until another one follows. */
    private static List<List<String>> rows() throws IOException {
        List<String> lines = Files.readAllLines(Path.of("..", "spec", "wire.md"));
        List<List<String>> rows = new ArrayList<>();
        String method = "";
        for (int at = lines.indexOf("| method | value | body |") + 2;
                lines.get(at).startsWith("|");
                at++) {
            List<String> cells = Arrays.stream(lines.get(at).split("\\|", -1))
                    .map(cell -> cell.replace("`", "").strip())
                    .toList();
            method = cells.get(1).isEmpty() ? method : cells.get(1);
            rows.add(List.of(method, cells.get(2), cells.get(3)));
        }
        return rows;
    }

    @Test
    void eachBodyOfThePageIsWhatTheCodecsWriteAndRead() throws IOException {
        int compared = 0;
        for (List<String> row : rows()) {
            String value = row.get(1);
            Object text = value.equals("null") ? null : value.replace("\"", "");
            boolean bob = value.contains("Bob");
            Object person = value.equals("null") ? null : new Person(bob ? "Bob" : "");
            switch (row.get(0)) {
                case "f(String)" -> compare("text", row, text);
                case "f(Optional<String>), f(@Nullable String)" -> {
                    compare("optionalText", row, Optional.ofNullable(text));
                    compare("nullableText", row, text);
                }
                case "f(int, int)" -> compare("numbers", row, 3, 0);
                case "f(Integer), and the result of CompletableFuture<@Nullable Integer> f()" -> {
                    compare("box", row, 0);
                    assertThat(resultOf("nullableStage", 0)).isEqualTo(bytes(row));
                }
                case "the result of int f() and of CompletableFuture<Integer> f()" -> {
                    assertThat(resultOf("result", 0)).isEqualTo(bytes(row));
                    assertThat(resultOf("stage", 0)).isEqualTo(bytes(row));
                }
                case "f(Person), with Person(String name)" -> compare("person", row, person);
                case "f(Optional<Person>), f(@Nullable Person)" -> {
                    compare("optionalPerson", row, Optional.ofNullable(person));
                    compare("nullablePerson", row, person);
                }
                case "f(List<String>)" -> compare("list", row, List.of("a", "b"));
                case "f(@Nullable List<String>)" -> compare("nullableList", row, List.of("a", "b"));
                default -> throw new IllegalArgumentException(row.get(0));
            }
            compared++;
        }
        assertThat(compared).isEqualTo(14);
    }

    private static String bytes(List<String> row) {
        return row.get(2).equals("empty") ? "" : row.get(2).replace(" ", "");
    }

    private String resultOf(String name, Object value) {
        ByteBuf out = Unpooled.buffer();
        codecs.result(method(name)).write(value, out);
        return ByteBufUtil.hexDump(out);
    }

    private void compare(String name, List<String> row, Object... values) {
        ByteBuf out = Unpooled.buffer();
        codecs.parameters(method(name)).write(values, out);
        assertThat(ByteBufUtil.hexDump(out)).as(name + row).isEqualTo(bytes(row));
        assertThat(codecs.parameters(method(name)).read(out)).as(name + row).isEqualTo(values);
    }
}
