package dev.rpcx.grpc;

import dev.rpcx.CallContext;
import dev.rpcx.Method;
import dev.rpcx.Publishers;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.schema.Field;
import java.security.Principal;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

/** The service of the tests, with a method for each form of a call. */
@RPCXServer("counter")
final class Counter {
    record Person(@Field(1) String name, @Field(2) int age) {}

    record BadField(@Field(1) String name) {}

    final CountDownLatch begun = new CountDownLatch(1);
    final CountDownLatch cancelled = new CountDownLatch(1);

    /** Lets {@link #waits} end. */
    final CompletableFuture<String> released = new CompletableFuture<>();

    /** Number of items that the publisher of {@link #large} has made. */
    final AtomicInteger made = new AtomicInteger();

    final AtomicInteger executed = new AtomicInteger();

    /** Time that a call of {@link #remaining} has had left, in nanoseconds. */
    volatile long remainingNanos;

    @Method("hello")
    String hello(String name) {
        executed.incrementAndGet();
        return "Hello " + name;
    }

    @Method("add")
    int add(int left, int right) {
        return left + right;
    }

    @Method("older")
    Person older(Person person) {
        return new Person(person.name(), person.age() + 1);
    }

    @Method("nothing")
    void nothing() {
        executed.incrementAndGet();
    }

    @Method("letters")
    String letters(int count) {
        return "x".repeat(count);
    }

    @Method("length")
    int length(String text) {
        return text.length();
    }

    @Method("fail")
    String fail(String text) {
        throw new RPCXException(RPCXException.Code.INVALID, text).withDetail(new BadField("age"));
    }

    @Method("header")
    String header(String name) {
        CallContext context = CallContext.current().orElseThrow();
        context.reply("Answer", "of " + name);
        context.reply("accent", "größer");
        String value = context.metadata().get(name);
        if (value == null) {
            throw new RPCXException(RPCXException.Code.NOT_FOUND, "no entry " + name);
        }
        return value;
    }

    @Method("principal")
    String principal() {
        return CallContext.current()
                .flatMap(CallContext::principal)
                .map(Principal::getName)
                .orElse("nobody");
    }

    @Method("remaining")
    void remaining() {
        remainingNanos = CallContext.current().orElseThrow().remainingNanos();
    }

    @Method("wait")
    CompletableFuture<String> waits() {
        CallContext.current().orElseThrow().onCancel(cancelled::countDown);
        begun.countDown();
        return released;
    }

    @Method("count")
    Flow.Publisher<Integer> count(int n) {
        return Publishers.of(IntStream.range(0, n).boxed().toList());
    }

    /** Brings {@code n} items, and then fails. */
    @Method("break")
    Flow.Publisher<Integer> breaks(int n) {
        return Publishers.of(IntStream.rangeClosed(0, n).boxed().peek(item -> {
            if (item == n) {
                throw new RPCXException(RPCXException.Code.UNAVAILABLE, "no more");
            }
        }));
    }

    /** Brings {@code n} items of {@code letters} letters. */
    @Method("large")
    Flow.Publisher<String> large(int n, int letters) {
        String item = "x".repeat(letters);
        return Publishers.of(IntStream.range(0, n).mapToObj(i -> {
            made.incrementAndGet();
            return item;
        }));
    }

    /** Adds up the items, which it asks for three at a time. */
    @Method("total")
    CompletableFuture<Integer> total(Flow.Publisher<Integer> items) {
        CompletableFuture<Integer> sum = new CompletableFuture<>();
        items.subscribe(new Flow.Subscriber<>() {
            private Flow.Subscription subscription;
            private int total;
            private int taken;

            @Override
            public void onSubscribe(Flow.Subscription given) {
                subscription = given;
                given.request(3);
                begun.countDown();
            }

            @Override
            public void onNext(Integer item) {
                total += item;
                if (++taken % 3 == 0) {
                    subscription.request(3);
                }
            }

            @Override
            public void onError(Throwable thrown) {
                cancelled.countDown();
                sum.completeExceptionally(thrown);
            }

            @Override
            public void onComplete() {
                sum.complete(total);
            }
        });
        return sum;
    }

    /** Takes the first item only when {@link #released} is complete. */
    @Method("late")
    CompletableFuture<Integer> late(Flow.Publisher<String> items) {
        CompletableFuture<Integer> letters = new CompletableFuture<>();
        items.subscribe(new Flow.Subscriber<>() {
            private final List<String> taken = new ArrayList<>();

            @Override
            public void onSubscribe(Flow.Subscription given) {
                begun.countDown();
                released.thenRun(() -> given.request(Long.MAX_VALUE));
            }

            @Override
            public void onNext(String item) {
                taken.add(item);
            }

            @Override
            public void onError(Throwable thrown) {
                letters.completeExceptionally(thrown);
            }

            @Override
            public void onComplete() {
                letters.complete(taken.stream().mapToInt(String::length).sum());
            }
        });
        return letters;
    }

    /** Brings back each item as it comes. */
    @Method("echo")
    Flow.Publisher<String> echo(Flow.Publisher<String> items) {
        return items;
    }
}
