package dev.rpcx.processor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.CompiledElsewhere;
import dev.rpcx.CompiledElsewhere.Said;
import dev.rpcx.schema.SchemaException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests messages whose accessors and constructors Lombok writes, with the compiler as users run it. Lombok's processor
 * stands before or after RPCX's.
 */
@Timeout(120)
class LombokTest {
    private static final String LOMBOK = CompiledElsewhere.libraries("lombok-");

    /** Types as users have them, a service, a client's interface, and calls from the one to the other. */
    private static final String SHOP = """
            package shop;

            import dev.rpcx.*;
            import dev.rpcx.schema.Field;
            import java.time.LocalDate;
            import java.util.List;
            import lombok.*;
            import org.jspecify.annotations.Nullable;

            @Value
            class Person {
                String name;
                @Nullable String nick;
                int age;
                boolean isAdult;
                LocalDate born;
                List<String> tags;
            }

            @Value
            @Builder
            class Order {
                @Field(2) String id;
                @Field(1) long cents;
                @Builder.Default @Field(3) List<String> notes = List.of("none");
            }

            @Data
            @Builder
            class Item {
                private String sku;
                private int count;
            }

            @Data
            class Bean {
                private String text;
                private boolean open;
            }

            @Data
            @NoArgsConstructor
            @AllArgsConstructor
            class Both {
                private String text;
                private Bean bean;
            }

            @RPCXServer("shop")
            class Shop {
                @Method Person person(Person person) { return person; }
                @Method Order order(Order order) { return order; }
                @Method List<Item> items(Item item, int count) { return java.util.Collections.nCopies(count, item); }
                @Method Both both(Both both) { return both; }
            }

            @RPCXClient(remoteServerName = "shop")
            interface ShopClient {
                Person person(Person person);
                Order order(Order order);
                List<Item> items(Item item, int count);
                Both both(Both both);
            }
            """;

    private static final String CALLS = """
            package shop;

            import java.util.List;

            public class Calls {
                public static List<String> made(ShopClient shop) {
                    Bean bean = new Bean();
                    bean.setText("t");
                    bean.setOpen(true);
                    return List.of(
                            shop.person(new Person("Ada", null, 36, true, null, List.of("a"))).toString(),
                            shop.person(new Person("Bob", "", 1, false, null, List.of())).toString(),
                            shop.order(Order.builder().id("7").cents(5).build()).toString(),
                            shop.items(Item.builder().sku("s").count(2).build(), 1).toString(),
                            shop.both(new Both("x", bean)).toString());
                }
            }
            """;

    @TempDir
    private Path folder;

    private Said compile(String order, String option, String shop) throws Exception {
        Path sources = Files.createDirectories(folder.resolve("shop"));
        Files.writeString(sources.resolve("Shop.java"), shop);
        Files.writeString(sources.resolve("Calls.java"), CALLS);
        String processors = order.equals("lombok first")
                ? CompiledElsewhere.path(LOMBOK, CompiledElsewhere.RPCX)
                : CompiledElsewhere.path(CompiledElsewhere.RPCX, LOMBOK);
        List<String> command = new ArrayList<>(List.of(
                CompiledElsewhere.program("javac"),
                "-J-XX:TieredStopAtLevel=1",
                "-J-XX:+UseSerialGC",
                "-proc:full",
                "-processorpath",
                processors,
                "-classpath",
                CompiledElsewhere.path(CompiledElsewhere.RPCX, LOMBOK, CompiledElsewhere.libraries("jspecify-")),
                "-d",
                classes().toString()));
        if (!option.isEmpty()) {
            command.add(option);
        }
        command.add(sources.resolve("Shop.java").toString());
        command.add(sources.resolve("Calls.java").toString());
        return CompiledElsewhere.run(command);
    }

    private Path classes() {
        return folder.resolve("classes");
    }

    @ParameterizedTest
    @ValueSource(strings = {"lombok first", "rpcx first"})
    void whatLombokWritesIsMapped(String order) throws Exception {
        Said said = compile(order, "-parameters", SHOP);
        assertThat(said.exit()).as(said.text()).isZero();
        assertThat(classes().resolve("META-INF/rpcx/services")).hasContent("shop.Shop\n");
        assertThat(CompiledElsewhere.calls(classes(), "shop"))
                .containsExactly(
                        "Person(name=Ada, nick=null, age=36, isAdult=true, born=null, tags=[a])",
                        "Person(name=Bob, nick=, age=1, isAdult=false, born=null, tags=[])",
                        "Order(id=7, cents=5, notes=[none])",
                        "[Item(sku=s, count=2)]",
                        "Both(text=x, bean=Bean(text=t, open=true))");
    }

    /** The compiler says it at the component, whichever processor is asked first. */
    @ParameterizedTest
    @ValueSource(strings = {"lombok first", "rpcx first"})
    void whatCannotBeMappedIsACompileErrorAtTheComponent(String order) throws Exception {
        String shop = SHOP.replace("LocalDate born;", "java.util.Calendar born;");
        long line = shop.lines().takeWhile(each -> !each.contains("born;")).count() + 1;
        Said said = compile(order, "-parameters", shop);
        assertThat(said.exit()).isNotZero();
        assertThat(said.text())
                .contains("Shop.java:" + line + ": error: shop.Person.born: java.util.Calendar cannot be mapped to"
                        + " Protobuf: write it as a ZonedDateTime")
                .contains("1 error");
        assertThat(classes().resolve("META-INF/rpcx/services")).doesNotExist();
    }

    /** A compiler does not tell its processors whether it keeps the names, so the start does. */
    @Test
    void aConstructorWhoseParametersHaveNoNamesIsRefusedAtTheStart() throws Exception {
        Said said = compile("lombok first", "", SHOP);
        assertThat(said.exit()).as(said.text()).isZero();
        assertThatThrownBy(() -> CompiledElsewhere.calls(classes(), "shop"))
                .isInstanceOf(SchemaException.class)
                .hasMessageContaining("the names of its constructor's parameters are not in the class file (expected:"
                        + " javac -parameters)");
    }
}
